"""Logs in Spark: counted and fitted on the executors."""
