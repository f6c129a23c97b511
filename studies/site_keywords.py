"""What MkDocs shows of functions whose keywords are the fields of a question: all of them, with their help."""

from __future__ import annotations

from typing import Any, Final

import griffe

DECORATOR: Final = "keywords("


class Keywords(griffe.Extension):
    """Parameters and documentation of such functions, as they are when Python has made them."""

    def on_function(self, *, func: griffe.Function, **_: Any) -> None:
        """Griffe tells: a function was read from its source."""
        if any(str(each.value).startswith(DECORATOR) for each in func.decorators):
            made = griffe.inspect(func.module.path, filepath=None)[func.name]
            func.parameters, func.docstring = made.parameters, made.docstring
