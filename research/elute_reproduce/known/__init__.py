"""Of elute's own: whether what `elute check` calls known is."""
