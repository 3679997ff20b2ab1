"""The paper on unconfounded propensity estimation."""
