"""Session click models: one model a file, the same verbs on each.

Those fitted on counts or by EM need no jax (`elute.clicks.backend`); what is trained by gradients does, and needs no
more than numpy, jax and optax, so that it runs on a bare GPU machine. Sessions come as arrays
(`Sessions`) or as an iterable of them; reading them from files is `elute.io.sessions`.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from elute.clicks.backend import require_jax
from elute.errors import EluteError

if TYPE_CHECKING:
    from elute.clicks.base.model import ClickModel, ModelClass
    from elute.clicks.base.trainer import Training
    from elute.clicks.models.cacm import CACM
    from elute.clicks.models.cascade import Cascade
    from elute.clicks.models.ccm import CCM
    from elute.clicks.models.dbn import DBN
    from elute.clicks.models.dcm import DCM
    from elute.clicks.models.dctr import DCTR
    from elute.clicks.models.ncm import NCM
    from elute.clicks.models.pbm import PBM
    from elute.clicks.models.rdctr import RDCTR
    from elute.clicks.models.sdbn import SDBN
    from elute.clicks.models.ubm import UBM
    from elute.clicks.sessions import Sessions
    from elute.clicks.structure.towers import MLP, Embedding, Linear

_HOMES = {
    "CACM": "models.cacm",
    "CCM": "models.ccm",
    "DBN": "models.dbn",
    "DCM": "models.dcm",
    "DCTR": "models.dctr",
    "MLP": "structure.towers",
    "NCM": "models.ncm",
    "PBM": "models.pbm",
    "RDCTR": "models.rdctr",
    "SDBN": "models.sdbn",
    "UBM": "models.ubm",
    "Cascade": "models.cascade",
    "ClickModel": "base.model",
    "Embedding": "structure.towers",
    "Linear": "structure.towers",
    "Sessions": "sessions",
    "Training": "base.trainer",
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


def model_of(name: str) -> ModelClass:
    """The class of a model by its name."""
    if name not in MODELS:
        raise EluteError(f"no click model '{name}'; there are: {', '.join(MODELS)}")
    if name in BY_GRADIENTS:
        require_jax()
    module = import_module(f"elute.clicks.models.{name}")
    found: ModelClass = getattr(module, "Cascade" if name == "cascade" else name.upper())
    return found


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used."""
    if name not in _HOMES:
        raise AttributeError(f"module 'elute.clicks' has no attribute '{name}'")
    return getattr(import_module(f"elute.clicks.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return sorted([*__all__, "BY_GRADIENTS", "MODELS", "model_of"])
