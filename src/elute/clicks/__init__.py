"""Session click models in JAX: one model a file, the same verbs on each.

Nothing here needs more than numpy, jax and optax, so that it runs on a bare GPU machine. Sessions come as arrays
(`Sessions`) or as an iterable of them; reading them from files is `elute.io.sessions`.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from elute.errors import EluteError

try:
    import jax  # noqa: F401
    import optax  # noqa: F401
except ModuleNotFoundError as missing:
    raise EluteError('session click models need jax and optax; run: pip install "elute[neural]"') from missing

if TYPE_CHECKING:
    from elute.clicks.cacm import CACM
    from elute.clicks.cascade import Cascade
    from elute.clicks.ccm import CCM
    from elute.clicks.dbn import DBN
    from elute.clicks.dcm import DCM
    from elute.clicks.dctr import DCTR
    from elute.clicks.model import ClickModel
    from elute.clicks.ncm import NCM
    from elute.clicks.pbm import PBM
    from elute.clicks.rdctr import RDCTR
    from elute.clicks.sdbn import SDBN
    from elute.clicks.sessions import Sessions
    from elute.clicks.towers import MLP, Embedding, Linear
    from elute.clicks.trainer import Training
    from elute.clicks.ubm import UBM

_HOMES = {
    "CACM": "cacm",
    "CCM": "ccm",
    "DBN": "dbn",
    "DCM": "dcm",
    "DCTR": "dctr",
    "MLP": "towers",
    "NCM": "ncm",
    "PBM": "pbm",
    "RDCTR": "rdctr",
    "SDBN": "sdbn",
    "UBM": "ubm",
    "Cascade": "cascade",
    "ClickModel": "model",
    "Embedding": "towers",
    "Linear": "towers",
    "Sessions": "sessions",
    "Training": "trainer",
}
__all__ = [
    "CACM",
    "CCM",
    "DBN",
    "DCM",
    "DCTR",
    "MLP",
    "NCM",
    "PBM",
    "RDCTR",
    "SDBN",
    "UBM",
    "Cascade",
    "ClickModel",
    "Embedding",
    "Linear",
    "Sessions",
    "Training",
]

MODELS = ("dctr", "rdctr", "pbm", "cascade", "dcm", "ccm", "ubm", "sdbn", "dbn", "ncm", "cacm")
"""The names of all models, from the plainest."""

BY_GRADIENTS = ("ncm", "cacm")
"""Those without a fit on counts or by EM: their iterations are epochs."""


def model_of(name: str) -> type[ClickModel[Any]]:
    """The class of a model by its name."""
    if name not in MODELS:
        raise EluteError(f"no click model '{name}'; there are: {', '.join(MODELS)}")
    module = import_module(f"elute.clicks.{name}")
    found: type[ClickModel[Any]] = getattr(module, "Cascade" if name == "cascade" else name.upper())
    return found


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used."""
    if name not in _HOMES:
        raise AttributeError(f"module 'elute.clicks' has no attribute '{name}'")
    return getattr(import_module(f"elute.clicks.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return sorted([*__all__, "BY_GRADIENTS", "MODELS", "model_of"])
