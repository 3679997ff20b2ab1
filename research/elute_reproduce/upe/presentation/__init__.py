"""What the pages show of the trainings: tables, charts, claims, and the published values beside them."""
