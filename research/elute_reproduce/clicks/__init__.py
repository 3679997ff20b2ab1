"""Session click models on real clicks."""
