"""Logs that lie elsewhere: https, S3, Postgres."""
