"""What verbs print for people: the verdict first, then the evidence, then what to run next."""
