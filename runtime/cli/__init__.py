"""The commands: what each parses, refuses and prints. `python -m runtime.NAME` are the doors to them."""
