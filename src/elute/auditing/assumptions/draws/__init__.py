"""Clicks drawn under a null: given every item's total, or by clusters."""
