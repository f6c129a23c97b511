"""What training cannot do without, looked for before anything is started: the extra `runtime` may not be installed."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Final

from gcnsim.errors import ScenarioError

_NEEDED: Final = ("torch", "safetensors")


def check_libraries() -> None:
    """Raise ScenarioError when torch or safetensors is not installed. Neither is imported."""
    missing = [name for name in _NEEDED if find_spec(name) is None]
    if missing:
        raise ScenarioError(f"training needs {' and '.join(missing)}; pip install 'gcnsim[runtime]'")
