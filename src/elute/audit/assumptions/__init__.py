"""Do the click model's own assumptions hold on a log? One test a file; `assumptions` runs them all."""

from elute.audit.assumptions.battery import assumptions
from elute.audit.assumptions.finding import Finding
from elute.audit.assumptions.groups import Groups

__all__ = ["Finding", "Groups", "assumptions"]
