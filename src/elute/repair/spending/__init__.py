"""Where impressions lower standard errors most."""
