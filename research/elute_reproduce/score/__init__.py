"""Clicks adjusted for the logging policy's score."""
