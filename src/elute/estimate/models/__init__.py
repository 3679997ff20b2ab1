"""Models of clicks on cells, one a file, all with the same verbs."""
