"""Repair plans: what a budget buys."""
