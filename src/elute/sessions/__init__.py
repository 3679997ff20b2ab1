"""Session click models fitted to a click log, in a folder, and read from it again: between `elute.clicks`, which knows
arrays only, and the log's engines."""
