"""A log in a warehouse: the statement that counts its cells there, and the file of cells that comes back."""
