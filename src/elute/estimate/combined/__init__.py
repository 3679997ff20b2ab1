"""Two sources of propensities as one: what items under several factors say, and what a score says between them."""
