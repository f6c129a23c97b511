"""The engine in flat arrays: plain Python that can be compiled, and is."""
