"""Generic identifiability: which click models a log's structure determines, by exact arithmetic modulo a prime."""
