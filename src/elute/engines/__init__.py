"""Engines: where a log lives and its rows are touched. `base` has the protocol, each folder one way to fulfil it."""
