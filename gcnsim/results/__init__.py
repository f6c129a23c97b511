"""Rows of answers: built once, read by JSON, tables, pages, comparison and the Python API."""

from gcnsim.results.row import KEYS, Row

__all__ = ["KEYS", "Row"]
