"""Counts on disk, which take a log's place."""
