"""Checkpoints: the state that a resumed run needs, and its files."""
