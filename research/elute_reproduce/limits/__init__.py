"""The paper on the limits of unbiasedness."""
