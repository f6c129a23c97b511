"""Recorded runs are made as validation makes them."""

from __future__ import annotations

from tests.gcnsim.evidence.conftest import write_run

__all__ = ["write_run"]
