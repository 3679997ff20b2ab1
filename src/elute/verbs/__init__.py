"""The verbs of the library: each takes a log in any form, and returns a result that shows itself."""
