"""Tests of how several bias columns act together."""
