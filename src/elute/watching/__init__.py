"""A folder of parts over time: what each period tells, what changed, and whether that is more than chance."""
