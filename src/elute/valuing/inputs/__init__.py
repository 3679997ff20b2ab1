"""What is valued: the log's pages, rankings to fill them with, and how likely places are looked at."""
