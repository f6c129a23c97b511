"""Traces of the PyTorch profiler, read as runs: any trainer's, not only ours."""
