"""elute's own estimators: coverage, priors, real clicks."""
