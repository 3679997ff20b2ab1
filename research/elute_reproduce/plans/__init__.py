"""Swap plans: whether what they promise holds when they are carried out."""
