"""What session click models share: their verbs, priors, training by gradients, checkpoints."""
