"""A folder of counts that grows: parts, each counted by itself, read as one log."""
