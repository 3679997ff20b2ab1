"""Identification, before any estimation: what the structure of a log allows to be recovered."""
