"""The commands: what each parses, refuses and prints. `python -m runtime.NAME` runs them."""
