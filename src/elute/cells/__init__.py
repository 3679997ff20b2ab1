"""What remains of a log once it has been read: cells, their structure, and the columns they were made from."""
