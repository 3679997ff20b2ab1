"""The embedded engine: files, tables and frames, read by DuckDB in this process."""
