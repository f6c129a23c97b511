"""Mutations of a source file: every place where one small change could be made, and what would stand there instead.

Five kinds. *comparison*: the neighbouring operator (`<` becomes `<=`) or the opposite (`==`, `is`, `in`). *arithmetic*:
the opposite operation. *constant*: a number becomes the next integer, or half as much again; a tiny one (a tolerance, a
nano-unit) one more, since half as much again of a tolerance does the same by design. *swapped*: the first two
positional arguments that differ change places. *dropped*: a statement whose effect is not only to bind a new name.

Left out, as no test could tell or none should: annotations, `__repr__`, `if TYPE_CHECKING`, the last lines of a script
(`if __name__ == ...`), `assert`, the formats inside f-strings, what tunes a cache or a warning (`maxsize`,
`stacklevel`), arguments of commutative functions, and dropped statements of modules and classes (nothing would import).
"""

from __future__ import annotations

import ast
import itertools
import re
from collections.abc import Iterator
from dataclasses import dataclass

KINDS = ("comparison", "arithmetic", "constant", "swapped", "dropped")

OPPOSITES = {
    ast.Lt: ("<", "<="),
    ast.LtE: ("<=", "<"),
    ast.Gt: (">", ">="),
    ast.GtE: (">=", ">"),
    ast.Eq: ("==", "!="),
    ast.NotEq: ("!=", "=="),
    ast.Is: (r"is\b", "is not"),
    ast.IsNot: (r"is\s+not\b", "is"),
    ast.In: (r"in\b", "not in"),
    ast.NotIn: (r"not\s+in\b", "in"),
    ast.Add: (r"\+", "-"),
    ast.Sub: ("-", "+"),
    ast.Mult: (r"\*", "/"),
    ast.Div: ("/", "*"),
    ast.FloorDiv: ("//", "*"),
    ast.Mod: ("%", "*"),
    ast.Pow: (r"\*\*", "*"),
}
"""Operator: how it is written (a regular expression), what stands there instead."""

COMMUTATIVE = {"min", "max", "gcd", "lcm", "isclose", "minimum", "maximum", "hypot", "add", "multiply", "array_equal"}
COMMUTATIVE |= {"logical_and", "logical_or", "intersect1d", "union1d"}
TUNING = {"maxsize", "stacklevel", "help"}
TINY = 1e-5


@dataclass(frozen=True, slots=True, order=True)
class Mutation:
    """One change: bytes start to end of a file become `new`.

    first, last: the lines of the statement; a test that runs none of them cannot tell. Both 0: it runs at import.
    """

    path: str
    line: int
    kind: str
    start: int
    end: int
    new: str
    first: int
    last: int

    def applied(self, source: bytes) -> bytes:
        """The changed source."""
        return source[: self.start] + self.new.encode() + source[self.end :]


class _Finder(ast.NodeVisitor):
    def __init__(self, path: str, source: bytes) -> None:
        self.path, self.source = path, source
        self.starts = [0]
        for line in source.splitlines(keepends=True):
            self.starts.append(self.starts[-1] + len(line))
        self.found: list[Mutation] = []
        self.bound: list[set[str]] = []  # per function that surrounds this place, the names bound so far
        self.span = (0, 0)

    def at(self, node: ast.expr | ast.stmt) -> tuple[int, int]:
        """Bytes from, to."""
        end_line, end = node.end_lineno or node.lineno, node.end_col_offset or 0
        return self.starts[node.lineno - 1] + node.col_offset, self.starts[end_line - 1] + end

    def add(self, kind: str, start: int, end: int, new: str, line: int) -> None:
        first, last = self.span if self.bound else (0, 0)
        self.found.append(Mutation(self.path, line, kind, start, end, new, first, last))

    def replace_operator(self, kind: str, operator: ast.AST, start: int, end: int, line: int) -> None:
        known = OPPOSITES.get(type(operator))
        match = re.search(known[0].encode(), self.source[start:end]) if known else None
        if known and match:
            self.add(kind, start + match.start(), start + match.end(), known[1], line)

    def visit_Compare(self, node: ast.Compare) -> None:
        sides = [node.left, *node.comparators]
        for operator, left, right in zip(node.ops, sides, sides[1:], strict=False):
            self.replace_operator("comparison", operator, self.at(left)[1], self.at(right)[0], node.lineno)
        self.generic_visit(node)

    def visit_BinOp(self, node: ast.BinOp) -> None:
        self.replace_operator("arithmetic", node.op, self.at(node.left)[1], self.at(node.right)[0], node.lineno)
        self.generic_visit(node)

    def visit_AugAssign(self, node: ast.AugAssign) -> None:
        self.replace_operator("arithmetic", node.op, self.at(node.target)[1], self.at(node.value)[0], node.lineno)
        self.generic_visit(node)

    def visit_Constant(self, node: ast.Constant) -> None:
        if isinstance(node.value, int | float) and not isinstance(node.value, bool):
            self.add("constant", *self.at(node), repr(_other(node.value)), node.lineno)

    def visit_JoinedStr(self, node: ast.JoinedStr) -> None:
        """Nothing: positions inside f-strings are not known before Python 3.12."""

    def visit_Call(self, node: ast.Call) -> None:
        name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        plain = [] if name in COMMUTATIVE else [arg for arg in node.args if not isinstance(arg, ast.Starred)]
        for one, other in itertools.pairwise(plain):
            if ast.dump(one) != ast.dump(other):
                (a, b), (c, d) = self.at(one), self.at(other)
                swapped = self.source[c:d] + self.source[b:c] + self.source[a:b]
                self.add("swapped", a, d, swapped.decode(), node.lineno)
                break
        self.generic_visit(node)

    def visit_keyword(self, node: ast.keyword) -> None:
        if node.arg not in TUNING:
            self.generic_visit(node)

    def visit_arg(self, node: ast.arg) -> None:
        """Nothing: an annotation."""

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        if node.value is not None:
            self.visit(node.value)

    def visit_Assert(self, node: ast.Assert) -> None:
        """Nothing: what cannot happen."""

    def visit_If(self, node: ast.If) -> None:
        test = ast.unparse(node.test)
        if not test.endswith("TYPE_CHECKING") and not test.startswith("__name__"):
            self.generic_visit(node)

    def visit_FunctionDef(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        for decorator in node.decorator_list:
            self.visit(decorator)
        self.visit(node.args)
        if node.name != "__repr__":
            self.bound.append(set())
            for statement in node.body:
                self.visit(statement)
            self.bound.pop()

    visit_AsyncFunctionDef = visit_FunctionDef  # noqa: N815

    def visit(self, node: ast.AST) -> None:
        if not isinstance(node, ast.stmt):
            super().visit(node)
            return
        outer, body = self.span, getattr(node, "body", None)
        self.span = (node.lineno, body[0].lineno - 1 if body else node.end_lineno or node.lineno)
        self.span = (self.span[0], max(self.span))
        if self.bound and self.droppable(node):
            self.add("dropped", *self.at(node), "pass", node.lineno)
        super().visit(node)
        self.span = outer

    def droppable(self, node: ast.stmt) -> bool:
        """Whether the statement has an effect besides binding a new name."""
        if isinstance(node, ast.Expr):
            return not isinstance(node.value, ast.Constant)
        if isinstance(node, ast.Assign):
            names = {point.id for target in node.targets for point in ast.walk(target) if isinstance(point, ast.Name)}
            known = names <= self.bound[-1]
            self.bound[-1] |= names
            return known or not all(isinstance(target, ast.Name | ast.Tuple) for target in node.targets)
        return isinstance(node, ast.AugAssign | ast.Raise | ast.Return | ast.Continue | ast.Break | ast.Delete)


def _other(value: float) -> float:
    if isinstance(value, int):
        return value + 1 if abs(value) <= 64 else round(1.5 * value)
    return 1.5 * value if abs(value) > TINY else 1.0 + value


def mutations(path: str, source: bytes) -> Iterator[Mutation]:
    """Every mutation of a file, in the order of its text. path: as it is to be reported."""
    finder = _Finder(path, source)
    finder.visit(ast.parse(source))
    yield from sorted(finder.found)
