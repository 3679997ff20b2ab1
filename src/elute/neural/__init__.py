"""Learners of unbiased learning to rank on features, in JAX; the same code runs on a CPU and on a GPU.

Needs numpy, jax and optax only: no engine, no Arrow, so that it runs on a bare GPU machine.
"""

from __future__ import annotations

from elute.errors import EluteError

try:
    import jax
    import optax
except ModuleNotFoundError as missing:
    raise EluteError(
        f'the neural learners need {missing.name}, which is not installed; run: pip install "elute[neural]"'
    ) from missing

__all__: list[str] = []
del jax, optax
