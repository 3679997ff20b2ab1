"""Judging a model: ranking and click metrics, significance, debiasedness. numpy arrays in, numbers out."""
