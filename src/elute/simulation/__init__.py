"""Simulated users and logs, whose truth is known."""
