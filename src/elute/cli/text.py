"""Text from logs, made safe and short for a terminal."""

from elute._util.text import format_count, format_share, list_rows, to_one_line

__all__ = ["format_count", "format_share", "list_rows", "to_one_line"]
