"""Run folders: what a training run leaves of itself, and what its iterations say in a few numbers."""
