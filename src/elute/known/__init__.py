"""From linked to known: how much of a log's relevance and propensities its clicks settle."""
