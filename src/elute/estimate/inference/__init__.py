"""How sure a fit can be: the bootstrap, and the certificate of precision."""
