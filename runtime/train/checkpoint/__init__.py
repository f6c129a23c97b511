"""Checkpoints: what a run saves to go on from, and the files that hold it."""
