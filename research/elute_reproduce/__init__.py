"""Published tables and figures as executable checks: one module a table or figure.

Each has `run(...)`, which measures and returns a `Reproduction`: published and measured values side by side,
a verdict by a stated tolerance, pictures, and how to read them.
"""
