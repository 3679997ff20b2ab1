"""Clicks of a fit's own log drawn anew, and the fit made again: what noise alone would make of it."""
