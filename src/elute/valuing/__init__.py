"""What another ranking would earn: counterfactual value with error bars, and what cannot be valued."""
