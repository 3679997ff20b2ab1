"""Logs larger than memory: rows put aside by partition of the items, one partition in memory at a time."""
