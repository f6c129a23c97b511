"""What MkDocs shows of docstrings: every keyword of functions that take the fields of a question; examples as code."""

from __future__ import annotations

from typing import Any, Final

import griffe

from studies.site import fenced

DECORATOR: Final = "keywords("


class Keywords(griffe.Extension):
    """Parameters and documentation of such functions, as they are when Python has made them."""

    def on_function(self, *, func: griffe.Function, **_: Any) -> None:
        """Griffe tells: a function was read from its source."""
        if any(str(decorator.value).startswith(DECORATOR) for decorator in func.decorators):
            made = griffe.inspect(func.module.path, filepath=None)[func.name]
            func.parameters, func.docstring = made.parameters, made.docstring
        self.on_object(obj=func)

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        """Griffe tells: an object was read from its source."""
        if obj.docstring is not None:
            obj.docstring.value = fenced(obj.docstring.value)
