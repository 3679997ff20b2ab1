"""Damaged files, run through every verb that reads them: `make fuzz`, and a part of it in the tests."""
