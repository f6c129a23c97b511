"""The training methods: one file for each published system, found by its name."""

from runtime.methods.method import Context, Method
from runtime.methods.registry import method_class

__all__ = ["Context", "Method", "method_class"]
