"""Pieces of SQL: names and values quoted, clicks and ids as expressions, text files described."""
