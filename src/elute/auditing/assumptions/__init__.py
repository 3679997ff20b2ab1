"""Do the click model's own assumptions hold on a log? One test a file; `assess_assumptions` runs them all."""

from elute.auditing.assumptions.battery import assess_assumptions
from elute.auditing.assumptions.finding import Finding
from elute.auditing.assumptions.groups import Groups

__all__ = ["Finding", "Groups", "assess_assumptions"]
