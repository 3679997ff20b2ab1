"""Text from logs, made safe and short for a terminal."""

from elute._util.text import count, listed, plain, share

__all__ = ["count", "listed", "plain", "share"]
