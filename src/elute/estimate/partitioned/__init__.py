"""Fits of cells that no machine holds at once: computed partition by partition and merged."""
