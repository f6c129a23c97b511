"""The JSON schema of a type: of dataclasses, TypedDicts and what they are made of.

A type says the range of its values, a field's metadata its key and whether it may be left out
(`gcnsim/core/shapes.py`); the text below a field says what it is, the first paragraph below a class what that is. Every
dataclass is a definition.
"""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Callable, Mapping, Sequence
from dataclasses import Field, asdict, fields, is_dataclass
from functools import cache
from types import NoneType, UnionType
from typing import (
    Annotated,
    Any,
    Final,
    Literal,
    NotRequired,
    Union,
    get_args,
    get_origin,
    get_type_hints,
    is_typeddict,
)

from gcnsim.core.shapes import (
    ABOUT,
    BANDWIDTH,
    INSIDE,
    JUDGED,
    KEY,
    LATE,
    NULL,
    OMITTED,
    As,
    Keys,
    Nested,
    Text,
    Within,
)

_PLAIN: Final[Mapping[Any, str]] = {str: "string", bool: "boolean", int: "integer", float: "number"}


class Schemas:
    """Schemas of types. definitions: of the classes met so far, by name. described: with the text of each field."""

    def __init__(self, *, described: bool = True) -> None:
        self.texts: Callable[[type], dict[str, str]] = _texts if described else lambda _: {}
        self.definitions: dict[str, dict[str, Any]] = {}

    def of(self, hint: Any) -> dict[str, Any]:
        """The schema of the values of a type."""
        origin, inside = get_origin(hint), get_args(hint)
        if origin is Annotated:
            return self._annotated(*inside)
        if origin in (Union, UnionType):
            others = [self.of(item) for item in inside if item is not NoneType]
            found = others[0] if len(others) == 1 else {"type": sorted({other["type"] for other in others})}
            return self._or_null(found) if NoneType in inside else found
        if origin is Literal:
            return {"enum": list(inside)}
        if origin in (tuple, list, Sequence):
            fixed = origin is tuple and inside[-1] is not Ellipsis
            size = {"minItems": len(inside), "maxItems": len(inside)} if fixed else {}
            return {"type": "array", "items": self.of(inside[0])} | size
        if hint is Any:
            return {}
        if isinstance(hint, Keys):
            content = {name: self.of(kind) for name, kind in hint.kinds}
            return _empty() | {"required": list(content) if hint.needed else [], "properties": content}
        if is_dataclass(hint):
            return self._reference(hint)
        if is_typeddict(hint):
            return self._typed_dict(hint)
        if inside:
            values = self.of(inside[1])
            return {"type": "object"} | ({"additionalProperties": values} if values else {})
        return {"type": _PLAIN[hint]}

    def whole(self, kind: Any) -> dict[str, Any]:
        """The schema of a document."""
        return self._typed_dict(kind) if is_typeddict(kind) else self.object_of(kind)

    def _annotated(self, hint: Any, *about: Any) -> dict[str, Any]:
        """The schema of a type with what is annotated of it."""
        found = self._reference(hint, judged=True) if JUDGED in about else {}
        for entry in about:
            if isinstance(entry, As):
                found = self.of(entry.kind)
                if entry.more is Any:
                    del found["additionalProperties"]
                elif entry.more is not None:
                    found["additionalProperties"] = self.of(entry.more)
        found = found or self.of(hint)
        for entry in about:
            if isinstance(entry, Within):
                given = {_camel(key): value for key, value in asdict(entry).items() if value is not None}
                found = found | {
                    key: list(value) if isinstance(value, tuple) else value for key, value in given.items()
                }
                if entry.enum:
                    del found["type"]
            elif isinstance(entry, str) and entry != JUDGED:
                found = found | {"description": entry}
        return found

    def _typed_dict(self, kind: Any) -> dict[str, Any]:
        """The schema of a TypedDict."""
        whole, document = _empty() | {"description": _about(kind)}, self.texts(kind)
        for key, hint in get_type_hints(kind, include_extras=True).items():
            optional = get_origin(hint) is NotRequired
            if not optional and kind.__total__:
                whole["required"].append(key)
            text = {"description": document[key]} if key in document else {}
            whole["properties"][key] = self.of(get_args(hint)[0] if optional else hint) | text
        return whole

    def _reference(self, kind: Any, *, judged: bool = False) -> dict[str, Any]:
        name = f"Judged{kind.__name__}" if judged else kind.__name__
        if name not in self.definitions:
            self.definitions[name] = self.object_of(kind, judged=judged)
        return {"$ref": f"#/$defs/{name}"}

    def object_of(self, kind: Any, *, judged: bool = False) -> dict[str, Any]:
        """The schema of a dataclass: its fields, and what its plain data have besides. judged: of one beside a
        recommended setting."""
        whole = _empty()
        hints, document = get_type_hints(kind, include_extras=True), self.texts(kind)
        for field in fields(kind):
            if JUDGED not in field.metadata or judged:
                group: Nested | None = field.metadata.get(INSIDE)
                place = whole if group is None else self._nested(whole, group)
                key = field.metadata.get(KEY, field.name)
                said = field.metadata.get(ABOUT) or document.get(field.name)
                text = {"description": said} if said else {}
                place["properties"][key] = self.of(_written(field, hints[field.name])) | text
                if not (OMITTED in field.metadata or field.metadata.get(LATE)):
                    place["required"].append(key)
        for key in getattr(kind, "ADDED", ()):
            whole["properties"][key] = self._added(kind, key)
            whole["required"].append(key)
        if getattr(kind, "MAY_SAY_MORE", False):
            del whole["additionalProperties"]
        return whole | {"description": _about(kind)}

    def _nested(self, whole: dict[str, Any], group: Nested) -> dict[str, Any]:
        """The object inside `whole` that some fields make up."""
        if group.key not in whole["properties"]:
            inner = _empty() | {"description": group.description}
            whole["properties"][group.key] = self._or_null(inner) if group.absent == "null" else inner
            if group.absent != "omitted":
                whole["required"].append(group.key)
        found: dict[str, Any] = whole["properties"][group.key]
        return found

    def _added(self, kind: type, key: str) -> dict[str, Any]:
        """What plain data have besides fields: a property, or what they say again of their row."""
        own = getattr(kind, key, None)
        if isinstance(own, property):
            return self.of(get_type_hints(own.fget, include_extras=True)["return"]) | {"description": _about(own)}
        again: dict[str, Any] = self.object_of(get_type_hints(kind)["row"])["properties"][key]
        return again

    def _or_null(self, found: dict[str, Any]) -> dict[str, Any]:
        """A schema, or null. A reference is written out, since what stands beside one cannot widen it."""
        if "$ref" in found:
            found = self.definitions[found["$ref"].rpartition("/")[2]]
        kinds = found["type"] if isinstance(found["type"], list) else [found["type"]]
        return found | {"type": [*kinds, "null"]}


def _empty() -> dict[str, Any]:
    return {"type": "object", "required": [], "properties": {}, "additionalProperties": False}


def _written(field: Field[Any], hint: Any) -> Any:
    """The type that plain data have of a field."""
    if BANDWIDTH in field.metadata:
        return Text
    never = OMITTED in field.metadata or field.metadata.get(NULL) is False
    if never and get_origin(hint) in (Union, UnionType):
        (hint,) = (kind for kind in get_args(hint) if kind is not NoneType)
    return hint


@cache
def _texts(kind: type) -> dict[str, str]:
    """The text below each field of a class, or of one that it comes of."""
    found = dict(_texts(kind.__base__)) if is_dataclass(kind.__base__) else {}
    (tree,) = ast.parse(textwrap.dedent(inspect.getsource(kind))).body
    assert isinstance(tree, ast.ClassDef)
    for place, text in zip(tree.body, tree.body[1:], strict=False):
        if isinstance(place, ast.AnnAssign) and isinstance(text, ast.Expr) and isinstance(text.value, ast.Constant):
            found[ast.unparse(place.target)] = " ".join(str(text.value.value).split())
    return found


def _about(kind: Any) -> str:
    """The first paragraph of a text in code."""
    return " ".join((inspect.getdoc(kind) or "").partition("\n\n")[0].split())


def _camel(name: str) -> str:
    first, *others = name.split("_")
    return first + "".join(map(str.capitalize, others))
