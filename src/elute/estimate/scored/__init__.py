"""Clicks adjusted for the score that the logging policy ranked by: cells by score, their fits, what tests them."""
