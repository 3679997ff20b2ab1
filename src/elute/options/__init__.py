"""What options may be: one table of types and ranges for the command line and the library."""
