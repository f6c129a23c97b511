"""The pages and their questions."""
