"""CMIP: how much a model's scores still say about the logging policy's, beyond relevance (the CMIP paper)."""

from elute.auditing.cmip.metric import Cmip, cmip

__all__ = ["Cmip", "cmip"]
