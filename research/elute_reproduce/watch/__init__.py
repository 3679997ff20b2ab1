"""How often `elute watch` raises an alarm where nothing happens, and how soon where something does."""
