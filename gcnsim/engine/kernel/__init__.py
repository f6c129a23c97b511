"""The engine in flat arrays: plain Python that can also be compiled."""
