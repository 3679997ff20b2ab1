"""What may be assumed where clicks are few: alike factors, Beta relevance, and how strongly."""
