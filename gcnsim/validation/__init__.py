"""Predictions beside measurements of other runs: how far off, in which phase, and whether the ranking holds."""
