"""Private helpers that know nothing of click logs: files, text, addresses, storage."""
