"""What files of plans hold."""
