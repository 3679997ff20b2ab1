"""Ranking data and what is done to it with numpy alone: queries, documents, features, grades, scores."""
