"""What `elute.fit` is made of."""
