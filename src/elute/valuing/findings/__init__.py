"""What follows for queries, metrics, tests to come and what cannot be valued."""
