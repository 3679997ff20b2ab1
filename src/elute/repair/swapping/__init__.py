"""Showing items elsewhere: what a search engine could do, what users would lose by it, and what it would tell.

Array-level where it can be: cells by query (`traffic`), what is expected of items and factors (`expected`), the pairs
that could be shown (`feasible`), which of them join what clicks do not tie together (`links`), and what they would tell
(`forecast`).
"""
