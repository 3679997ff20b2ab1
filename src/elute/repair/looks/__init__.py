"""Following a swap plan as clicks come: intervals that hold at every look, what is left, and when to stop."""
