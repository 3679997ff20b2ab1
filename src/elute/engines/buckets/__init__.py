"""Counts written to object stores that speak S3's protocol."""
