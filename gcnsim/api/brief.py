"""A user's error in Python is a few lines: where it was asked, and what is wrong; not how deep it was found."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

from gcnsim.core.errors import GcnsimError

P = ParamSpec("P")
T = TypeVar("T")


def brief(function: Callable[P, T]) -> Callable[P, T]:
    """`function`, whose GcnsimError carries no frames of this package but one."""

    @wraps(function)
    def wrapper(*args: P.args, **kwargs: P.kwargs) -> T:
        try:
            return function(*args, **kwargs)
        except GcnsimError as error:
            raise error.with_traceback(None) from None

    return wrapper
