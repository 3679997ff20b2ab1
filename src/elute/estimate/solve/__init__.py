"""The mathematics under the models: the problem, its likelihood, solvers, standard errors, the boundary."""
