"""What is known where components cannot be compared: sharp intervals from all that bounds them."""
