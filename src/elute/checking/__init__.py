"""The verdict on a log: what it allows, why it falls apart, how much of it is enough, and its health."""
