"""`python -m runtime.emulate`: its entry point, which answers Ctrl-C at once, and its command."""
