"""Several biases at once: what a formula over the bias columns determines."""
