"""Counts of a log: made here or in a warehouse, and watched over time."""
