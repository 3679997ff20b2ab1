"""What every verb returns: a sentence, fields, a card for notebooks, and where it came from."""
