"""Independent implementations, written to be obvious rather than fast, that elute's results are held to."""
