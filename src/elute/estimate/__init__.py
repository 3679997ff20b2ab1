"""Estimators of propensities and relevance from counts: one model a file, the same few verbs on each."""
