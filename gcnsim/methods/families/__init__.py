"""Iterations that several published systems share, and what these systems have in common."""
