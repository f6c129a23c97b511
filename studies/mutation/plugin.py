"""A pytest plugin, in the copy where mutants are tested: which tests run which lines, or the tests that matter, run.

GCNSIM_MUTATION names a JSON file of one of two forms. {"seen": file, "sources": [...]}: every test's seconds and the
lines of the sources that it or a fixture of it runs are written to that file. {"order": [...], "limit": {...},
"known": [...], "told": file}: tests that are not known, then these in this order, each as long as its limit allows; the
first that fails is told.
"""

from __future__ import annotations

import json
import os
import signal
import time
from collections import defaultdict
from collections.abc import Generator
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

FIXTURE = "fixture "
PATIENCE_S = 20.0
"""Any test may compute that long, however quick it was. Processor time does not depend on who else works."""


class Seen:
    """Which tests run which lines. A line that a shared fixture runs counts for every test that asks for it."""

    def __init__(self, question: dict[str, Any]) -> None:
        from coverage import Coverage

        self.file, self.root = Path(question["seen"]), Path.cwd()
        self.coverage = Coverage(data_file=None, include=[str(self.root / path) for path in question["sources"]])
        self.coverage.start()
        self.seconds: dict[str, float] = defaultdict(float)
        self.failed: set[str] = set()
        self.fixtures: dict[str, list[str]] = {}
        self.now = ""

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, object, object]:
        known = getattr(item, "_fixtureinfo", None)
        definitions = [element for found in known.name2fixturedefs.values() for element in found] if known else []
        self.fixtures[item.nodeid] = [
            _named(definition) for definition in definitions if definition.scope != "function"
        ]
        self.switch(item.nodeid)
        start = time.perf_counter()
        result = yield
        self.seconds[item.nodeid] += time.perf_counter() - start
        return result

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(self, fixturedef: pytest.FixtureDef[Any]) -> Generator[None, object, object]:
        if fixturedef.scope == "function":
            return (yield)
        before = self.now
        self.switch(_named(fixturedef))
        try:
            return (yield)
        finally:
            self.switch(before)

    def switch(self, context: str) -> None:
        self.now = context
        self.coverage.switch_context(context)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self.failed.add(report.nodeid)

    def pytest_sessionfinish(self) -> None:
        self.coverage.stop()
        data = self.coverage.get_data()
        of_fixture = defaultdict(list)
        for test, names in self.fixtures.items():
            for name in names:
                of_fixture[name].append(test)
        lines = {
            Path(file).relative_to(self.root).as_posix(): {
                line: sorted({test for name in contexts for test in of_fixture.get(name, [name]) if name})
                for line, contexts in data.contexts_by_lineno(file).items()
            }
            for file in data.measured_files()
        }
        content = {"seconds": self.seconds, "failed": sorted(self.failed), "lines": lines}
        self.file.write_text(json.dumps(content), encoding="utf-8")


def _named(fixture: pytest.FixtureDef[Any]) -> str:
    return f"{FIXTURE}{fixture.baseid}::{fixture.argname}"


class Chosen:
    """Runs the tests of `order`, file by file; a test that exceeds its limit fails."""

    def __init__(self, question: dict[str, Any]) -> None:
        self.place = {test: number for number, test in enumerate(question["order"])}
        self.known = set(question["known"])
        self.limit: dict[str, float] = question["limit"]
        self.report_path = Path(question["told"])

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        chosen = (item for item in items if item.nodeid in self.place or item.nodeid not in self.known)
        items[:] = sorted(chosen, key=lambda item: self.place.get(item.nodeid, -1))

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, object, object]:
        signal.signal(signal.SIGPROF, _late)
        signal.setitimer(signal.ITIMER_PROF, self.limit.get(item.nodeid, PATIENCE_S))
        result = yield
        signal.setitimer(signal.ITIMER_PROF, 0.0)
        return result

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed and not self.report_path.exists():
            self.report_path.write_text(report.nodeid, encoding="utf-8")


def _late(_signal: int, _frame: FrameType | None) -> None:
    raise TimeoutError("this test takes much longer than it did")


def pytest_configure(config: pytest.Config) -> None:
    """Choose the form that is asked for."""
    requested = json.loads(Path(os.environ["GCNSIM_MUTATION"]).read_text(encoding="utf-8"))
    config.pluginmanager.register(Seen(requested) if "seen" in requested else Chosen(requested))
