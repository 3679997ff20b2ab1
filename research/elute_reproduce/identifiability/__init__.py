"""The identifiability paper's tables and figures."""
