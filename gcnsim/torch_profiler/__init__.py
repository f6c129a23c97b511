"""Read traces of the PyTorch profiler as runs, from any training program."""
