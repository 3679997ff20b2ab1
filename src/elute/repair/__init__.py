"""Making an unrecoverable log recoverable: which factors to merge, which items to swap, and what it costs.

Array-level: cells sorted by item, factors with a component label each. Nothing here knows of logs.
"""
