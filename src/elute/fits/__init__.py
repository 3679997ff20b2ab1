"""A fit as an object and as a folder: the one place where the files of a fit are written and read."""
