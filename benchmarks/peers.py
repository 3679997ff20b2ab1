"""CLAX (`pip install clax-models jax==0.7.2`) in an environment of its own, .benchmarks/peers, made where it is not
there: it does not run beside current versions of jax."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

PEERS = Path(__file__).parent.parent / ".benchmarks" / "peers"
SCRIPT = Path(__file__).parent / "clax_models.py"


def clax(model: str, folder: Path, sizes: tuple[int, int, int, int], how: str = "loader") -> dict[str, Any] | str:
    """What `clax_models` measures, or why there is nothing. `sizes`: sessions to train on, to stop by, to predict; and
    documents. `how`: "loader" is CLAX's own, "arrays" reads the file at once."""
    python = PEERS / "bin" / "python"
    if not python.exists():
        subprocess.run([sys.executable, "-m", "venv", str(PEERS)], check=True)
        wanted = ["clax-models", "jax==0.7.2", "pyarrow", "pandas"]
        done = subprocess.run(
            [python, "-m", "pip", "install", "-q", *wanted], check=False, capture_output=True, text=True
        )
        if done.returncode:
            return f"cannot be installed: {done.stderr.strip().splitlines()[-1][:200]}"
    command = [str(python), str(SCRIPT), model, str(folder), *map(str, sizes), how]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    if done.returncode:
        return f"failed: {done.stderr.strip().splitlines()[-1][:200]}"
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found
