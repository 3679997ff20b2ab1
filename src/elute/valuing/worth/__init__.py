"""Values and their errors: estimators, the delta method, clusters, differences that hold together."""
