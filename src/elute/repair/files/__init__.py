"""What files of plans hold, and what is shown of it."""
