"""The paper on CMIP, the metric of debiasedness."""
