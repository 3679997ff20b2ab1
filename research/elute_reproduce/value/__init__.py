"""Counterfactual values of rankings, against worlds whose truth is known and on real clicks."""
