"""Maximum likelihood of session click models on counts, without gradients."""
