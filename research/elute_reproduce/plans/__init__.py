"""Repair and bounds, in worlds whose truth is known."""
