"""Functions whose keywords are the fields of a question."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from inspect import signature
from typing import ParamSpec, TypeVar

from gcnsim.questions.question import Question, options

P = ParamSpec("P")
Q = TypeVar("Q", bound=Question)
T = TypeVar("T")


def keywords(kind: Callable[P, Q]) -> Callable[[Callable[[Q], T]], Callable[P, T]]:
    """A function of a question as one whose keywords are the fields of the class `kind`, with their help."""

    def of(answer: Callable[[Q], T]) -> Callable[P, T]:
        @wraps(answer)
        def asked(*args: P.args, **kwargs: P.kwargs) -> T:
            return answer(kind(*args, **kwargs))

        assert isinstance(kind, type)
        lines = [f"    - {name}: {each.line}" for name, each in options(kind).items()]
        asked.__doc__ = "\n".join([(answer.__doc__ or "").rstrip(), "", *lines])
        del asked.__wrapped__  # who inspects it shall find the keywords
        shown = signature(kind).replace(return_annotation=signature(answer).return_annotation)
        asked.__signature__ = shown  # type: ignore[attr-defined]  # what help() and notebooks show
        return asked

    return of
