"""The trained methods: one file or folder per published system, found by name. torch is imported only by workers."""

from runtime.methods.method import Method
from runtime.methods.registry import METHODS, method_of, method_type

__all__ = ["METHODS", "Method", "method_of", "method_type"]
