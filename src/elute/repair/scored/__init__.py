"""A score in place of links: how components stand to each other by what the logging policy ranked by."""
