"""Compiled inner loops on plain arrays: key tables, cell counting, union–find.

Engines feed them; nothing here knows of logs, columns or SQL.
"""
