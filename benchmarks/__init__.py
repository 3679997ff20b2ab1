"""Ratios against peers and physical floors, measured side by side in one run."""
