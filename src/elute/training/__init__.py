"""Rankers learnt from a click log and a table of features: `elute train`, and `elute rank` for what it leaves."""
