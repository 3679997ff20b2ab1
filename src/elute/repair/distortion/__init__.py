"""What merging does to relevance: by how much ratios are off, which queries keep their order, and which tree of pairs
does least harm."""
