"""The commands of `elute.verbs.counting`."""
