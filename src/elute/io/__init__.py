"""Readers of the formats people have."""
