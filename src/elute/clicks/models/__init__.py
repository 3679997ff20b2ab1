"""Session click models, one a file."""
