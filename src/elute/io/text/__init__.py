"""Text files of any size as arrays, chunk by chunk."""
