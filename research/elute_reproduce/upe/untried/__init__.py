"""Readings of UPE that the other pages leave out, each trained beside the exact optimum of its second stage."""
