"""`python -m elute`: the command line where no `elute` is on the path."""

from __future__ import annotations

from elute.cli import main

if __name__ == "__main__":
    main(prog_name="elute")
