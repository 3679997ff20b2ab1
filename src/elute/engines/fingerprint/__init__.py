"""What a log's source was when it was read, and whether it has changed since."""
