"""Several biases at once: effects that multiply, beside combinations, merging and leaving a column out."""
