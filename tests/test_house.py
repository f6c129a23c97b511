"""The house rules that no linter knows: what an import costs, how long things are, what must never be in the code."""

from __future__ import annotations

import ast
import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Collection, Iterator, Sequence
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

from gcnsim.methods import every_method
from tests.conftest import ALONE, group_of

ROOT = Path(__file__).resolve().parents[1]
SOURCES = sorted(path for room in ("gcnsim", "runtime", "studies") for path in (ROOT / room).rglob("*.py"))
TESTS = sorted((ROOT / "tests").rglob("*.py"))
FILE_WALL, FUNCTION_WALL = 400, 60

LOADERS = {"pickle", "cPickle", "marshal", "shelve", "dill", "cloudpickle", "joblib"}
"""Modules whose files run code when they are read."""

AMBIENT = {"random", "secrets", "uuid", "time", "datetime"}
"""Modules that make two runs of the same seed differ; they have no place in the simulator."""

STREAMS = Path("gcnsim", "core", "streams.py")
"""The one file that makes generators; all others are handed one."""


def names(nodes: Sequence[ast.AST]) -> Iterator[tuple[str, int]]:
    """Full names of the modules a file imports, with their lines."""
    for node in nodes:
        if isinstance(node, ast.Import):
            yield from ((alias.name, node.lineno) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module, node.lineno


@cache
def files() -> dict[Path, list[ast.AST]]:
    """The nodes of every source file, walked once."""
    return {path.relative_to(ROOT): [*ast.walk(ast.parse(path.read_text(encoding="utf-8")))] for path in SOURCES}


def run(code: str, *arguments: str) -> str:
    """What `code` prints last in a new interpreter."""
    done = subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()[-1]


def test_import_gcnsim_imports_nothing() -> None:
    code = "import sys; old = set(sys.modules); import gcnsim, json; print(json.dumps([*(set(sys.modules) - old)]))"
    added = {name for name in json.loads(run(code)) if name.split(".")[0] not in sys.stdlib_module_names}
    assert added == {"gcnsim"}


REFUSING = """
import sys
asked = sys.argv[1].split(",")
class Refuse:
    @staticmethod
    def find_spec(name, path=None, target=None):
        assert name.split(".")[0] not in asked, f"imports {name}"
sys.meta_path.insert(0, Refuse)
from gcnsim.cli import main
assert main(sys.argv[2:]) == 0
print("done")
"""
"""Runs a command where importing certain packages is an error, whether they are installed or not."""


def test_a_what_if_without_files_imports_nothing_slow() -> None:
    slow = "torch,dash,dgl,scipy,pymetis,numba,pyarrow,plotly"
    assert run(REFUSING, slow, "what-if", "--gpus", "2", "--method", "pipegcn") == "done"


def test_no_file_is_longer_than_the_wall() -> None:
    lengths = {
        str(path.relative_to(ROOT)): len(path.read_text(encoding="utf-8").splitlines()) for path in SOURCES + TESTS
    }
    assert len(lengths) > 200
    assert {path: lines for path, lines in lengths.items() if lines > FILE_WALL} == {}


def functions(within: ast.AST) -> Iterator[ast.AST]:
    """The statements of a file: functions are among them, and expressions, which are most of a tree, are not."""
    for node in ast.iter_child_nodes(within):
        if isinstance(node, ast.stmt | ast.ExceptHandler | ast.match_case):
            yield node
            yield from functions(node)


def test_no_function_is_longer_than_the_wall() -> None:
    tests = {path.relative_to(ROOT): functions(ast.parse(path.read_text(encoding="utf-8"))) for path in TESTS}
    found = {
        f"{path}:{node.lineno} {node.name}": 1 + (node.end_lineno or node.lineno) - node.lineno
        for path, nodes in [*files().items(), *tests.items()]
        for node in nodes
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    }
    assert {place: lines for place, lines in found.items() if lines > FUNCTION_WALL} == {}


def test_nothing_reads_files_that_can_run_code() -> None:
    found = [
        f"{path}:{line} {name}" for path, nodes in files().items() for name, line in names(nodes) if name in LOADERS
    ]
    assert found == []


def test_nothing_evaluates_text_or_starts_a_shell() -> None:
    calls = ((path, node) for path, nodes in files().items() for node in nodes if isinstance(node, ast.Call))
    assert [f"{path}:{call.lineno}" for path, call in calls if _runs_text(call)] == []


def _runs_text(node: ast.Call) -> bool:
    name = ast.unparse(node.func)
    shell = any(word.arg == "shell" and ast.unparse(word.value) != "False" for word in node.keywords)
    objects = any(word.arg == "allow_pickle" and ast.unparse(word.value) != "False" for word in node.keywords)
    bare_load = name in ("np.load", "numpy.load") and not any(word.arg == "allow_pickle" for word in node.keywords)
    return name in ("eval", "exec", "os.system", "os.popen") or shell or objects or bare_load


def test_no_draw_and_no_clock_but_the_named_streams() -> None:
    found = [
        f"{path}:{line} {name}"
        for path, nodes in files().items()
        if path.parts[0] == "gcnsim"
        for name, line in names(nodes)
        if name.split(".")[0] in AMBIENT
    ]
    drawn = [
        f"{path}:{node.lineno} {ast.unparse(node)}"
        for path, nodes in files().items()
        for node in nodes
        if isinstance(node, ast.Attribute)
        and ast.unparse(node.value) in ("np.random", "numpy.random")
        and node.attr != "Generator"
        and (path != STREAMS or node.attr in ("seed", "default_rng"))
    ]
    assert found + drawn == []


def test_nothing_is_left_to_do() -> None:
    marks = re.compile(r"\b(TODO|FIXME|XXX|HACK)\b")
    found = [str(path.relative_to(ROOT)) for path in SOURCES if marks.search(path.read_text(encoding="utf-8"))]
    assert found == []


def test_every_file_of_the_package_is_installed() -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["setuptools"]
    package = ROOT / "gcnsim"
    covered = {path for pattern in settings["package-data"]["gcnsim"] for path in package.glob(pattern)}
    # Python and Numba keep what they compile beside it.
    files = (path for path in package.rglob("*") if path.is_file() and path.parent.name != "__pycache__")
    data = {path for path in files if path.suffix != ".py"}
    assert package / "py.typed" in data
    assert data - covered == set()
    packages = {path.parent for path in SOURCES if path.relative_to(ROOT).parts[0] != "studies"}
    assert {folder for folder in packages if not (folder / "__init__.py").is_file()} == set()


@pytest.mark.skipif(shutil.which("make") is None, reason="make is not installed")
def test_bare_make_lists_every_target() -> None:
    listed = subprocess.run(["make", "-s"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    phony = re.search(r"^\.PHONY: (.*)$", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
    assert phony is not None
    assert re.findall(r"^  make ([a-z-]+) +\S", listed, re.MULTILINE) == phony[1].split()


RESOLVED = {
    "gcnsim.hardware": {"device", "host", "link", "platform", "read_platform"},
    "gcnsim.records.calibration": {"read_calibration"},
}
"""What of the catalogue and of records a machine is resolved from, by module."""

NEXT_DEVICE = Path("gcnsim", "planning", "steps.py")
"""Looks for the next faster device, which is no machine's yet."""


def test_who_predicts_asks_the_machine_and_not_the_catalogue() -> None:
    rooms = {"simulation", "planning", "api"}
    found = {
        f"{path}: {node.module}.{alias.name}"
        for path, nodes in files().items()
        if path.parts[0] == "gcnsim" and path.parts[1] in rooms and path != NEXT_DEVICE
        for node in nodes
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
        if alias.name in RESOLVED.get(node.module or "", ())
    }
    assert found == set()


METHOD_NAMES = frozenset(every_method()) - {"dgl", "graphsage"}
"""Names that are nothing else: DGL is a library too, GraphSAGE a model."""

BY_NAME = {
    "gcnsim/methods/registry.py": "the registry",
    "gcnsim/evidence/published_systems.py": "what papers call systems, by their words",
}
"""Files outside a method's own that may list methods by name, and why."""


def _strings(node: ast.AST) -> set[str]:
    return {item.value for item in ast.walk(node) if isinstance(item, ast.Constant) and isinstance(item.value, str)}


def test_no_code_outside_a_methods_file_tests_a_methods_name() -> None:
    """Neither by comparing with it, nor by looking a name up in a table of several."""
    found = []
    compared, tables = ast.Compare | ast.MatchValue, ast.Dict | ast.Set | ast.Tuple | ast.List
    for path, nodes in files().items():
        own = path.parts[:2] in (("gcnsim", "methods"), ("runtime", "methods"))
        if own or path.parts[0] == "studies" or str(path) in BY_NAME:
            continue
        if not {node.value for node in nodes if isinstance(node, ast.Constant)} & METHOD_NAMES:
            continue
        for node in nodes:
            if isinstance(node, compared) and _strings(node) & METHOD_NAMES:
                found.append(f"{path}:{node.lineno} compares with a method's name")
            if isinstance(node, tables) and len(_strings(node) & METHOD_NAMES) > 1:
                found.append(f"{path}:{node.lineno} lists methods by name")
    assert found == []


def _imports(nodes: Sequence[ast.AST], modules: Collection[str]) -> Iterator[str]:
    """The files that a file imports, also inside functions and for types alone."""
    for node in nodes:
        if isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                name = f"{node.module}.{alias.name}"
                yield name if name in modules else node.module


def test_no_circle_between_files() -> None:
    modules = {
        ".".join(path.with_suffix("").parts).removesuffix(".__init__"): nodes
        for path, nodes in files().items()
        if path.parts[0] != "studies"
    }
    del modules["gcnsim"]  # it names what its packages hold, for users, and knows the version
    graph = {name: set(_imports(nodes, modules)) & modules.keys() - {name} for name, nodes in modules.items()}
    assert len(graph) > 300
    TopologicalSorter(graph).prepare()


@pytest.fixture(scope="module")
def only_process(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Fails in the second process of a run that runs tests of this file."""
    run = os.environ.get("PYTEST_XDIST_TESTRUNUID")
    if run is None or request.config.workerinput["dist"] != "loadscope":  # type: ignore[attr-defined]
        pytest.skip("one process runs everything, or groups were not asked for")
    (tmp_path_factory.getbasetemp().parent / f"house-{run}").touch(exist_ok=False)


@pytest.mark.parametrize("place", range(8))
def test_one_process_runs_all_tests_of_a_file(only_process: None, place: int) -> None:
    assert group_of(f"tests/test_house.py::test[{place}::x]") == "tests/test_house.py"


def test_tests_that_measure_or_share_a_network_are_one_group_and_the_others_of_training_are_not() -> None:
    emulated, measured, learnt = (
        group_of(f"tests/runtime/{file}::test")
        for file in ("emulation/test_network.py", "cli/test_measure.py", "methods/test_blocks.py")
    )
    assert emulated == measured == "alone" != learnt


def test_files_of_the_group_are_there() -> None:
    files = {str(path.relative_to(ROOT)) for path in (ROOT / "tests").rglob("test_*.py")}
    assert all(any(file.startswith(beginning) for file in files) for beginning in ALONE)
