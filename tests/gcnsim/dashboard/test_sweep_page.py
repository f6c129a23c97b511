"""The Sweep page: what it shows of a folder, without a browser and in one."""

from __future__ import annotations

import csv
import json
import shlex
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest

from gcnsim.core.errors import FileError, GcnsimError
from gcnsim.dashboard.files import Files
from gcnsim.dashboard.jobs import Jobs
from gcnsim.dashboard.pages import forms, sweep
from tests.dashboards import json_of

WHERE = "cluster.bandwidth >= 10Gbps; iteration_s < 100"


def read(**values: str) -> dict[str, str]:
    form = forms.of_path("/sweep")
    assert form is not None
    return forms.read(form, f"?{urlencode(values)}")


def shown(folder: Path, **values: str) -> str:
    return str(sweep.view(read(folder="points", **values), Files(folder, folder), "light"))


def test_the_page_says_what_the_command_line_says(folder: Path) -> None:
    values = read(folder="points", where=WHERE, by="epoch_s", descending="yes")
    words = sweep.command(values)
    assert shlex.join(words[4:]) == (
        "--by epoch_s --descending --where 'cluster.bandwidth >= 10Gbps' --where 'iteration_s < 100'"
    )
    document = json_of(*words, folder=folder)
    text = shown(folder, where=WHERE, by="epoch_s", descending="yes")
    leads = f"Of {len(document)} points by epoch_s, the largest first ({document[0]['epoch_s']:.4g}), the first is "
    assert f"{leads}{document[0]['method']}" in text
    assert "UNCALIBRATED" in text
    assert "reddit, 2 x T4 in 2 servers at 25Gbps, " in text
    assert f"{len(document)} of 6 finished points shown." in text


def test_a_filter_that_leaves_nothing_says_so(folder: Path) -> None:
    assert "No finished point passes the filter." in shown(folder, where="iteration_s < 0")


@pytest.mark.parametrize(
    ("values", "text"),
    [
        ({"where": "iteration < 1"}, "--where: unknown column 'iteration'"),
        ({"where": "<script>alert(1)</script>"}, "is not a comparison"),
        ({"by": "iteration"}, "--by: unknown column 'iteration'"),
        ({"descending": "maybe"}, "largest first: 'maybe' is not allowed; yes or no"),
        ({"folder": "../elsewhere"}, "outside the folder"),
        ({"folder": "nothing"}, "does not exist"),
        ({"folder": "."}, "is not a folder of a sweep"),
    ],
)
def test_what_cannot_be_shown_is_a_line(folder: Path, values: dict[str, str], text: str) -> None:
    files = Files(folder, folder)
    with pytest.raises(GcnsimError) as error:
        sweep.view(read(**({"folder": "points"} | values)), files, "light")
    assert text in files.shown(str(error.value))
    assert str(folder) not in files.shown(str(error.value))
    assert "\n" not in str(error.value)


def test_a_large_sweep_is_left_to_the_command_line(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sweep, "MOST_POINTS", 5)
    with pytest.raises(FileError, match=r"points; allowed here: 5; gcnsim sweep best"):
        shown(folder)


def test_a_damaged_file_is_a_line(folder: Path, tmp_path: Path) -> None:
    copied = tmp_path / "points"
    copied.mkdir()
    for path in (folder / "points").iterdir():
        if path.is_file():
            (copied / path.name).write_bytes(path.read_bytes())
    held = bytearray((copied / "results.parquet").read_bytes())
    # In the midst of the pages: Parquet has checksums of those, none of its footer.
    held[(len(held) - int.from_bytes(held[-8:-4], "little")) // 2] ^= 0xFF
    (copied / "results.parquet").write_bytes(bytes(held))
    with pytest.raises(FileError, match="not a Parquet file of a sweep"):
        shown(tmp_path)


def test_the_files_to_take_home_are_of_the_filtered_points(folder: Path, tmp_path: Path) -> None:
    job = Jobs(tmp_path).start("sweep", sweep.options(read(folder="points", where=WHERE), Files(folder, folder)))
    job._thread.join(120)
    assert job.error is None
    points = json.loads((job.folder / "points.json").read_text(encoding="utf-8"))
    document = json_of("gcnsim", "sweep", "best", "points", "--where", WHERE.partition(";")[0], folder=folder)
    assert points == document
    lines = (job.folder / "points.csv").read_text(encoding="utf-8").splitlines()
    assert [int(entry["point"]) for entry in csv.DictReader(lines)] == [entry["point"] for entry in document]
    assert "The fastest of 3 points is" in (job.folder / "points.html").read_text(encoding="utf-8")


def test_a_filter_is_typed_and_its_address_opened_again(looking: Any, folder: Path) -> None:
    looking.open("/sweep?folder=points")
    looking.settled("/sweep")
    assert "6 of 6 finished points shown." in looking.page.inner_text("#view")
    looking.page.fill("input[id*=where]", "cluster.bandwidth >= 10Gbps")
    looking.page.keyboard.press("Enter")
    looking.page.wait_for_selector("#view:has-text('3 of 6 finished points shown.')")
    document = json_of(*shlex.split(looking.page.inner_text("#command")), folder=folder)
    assert f"{1000 * document[0]['iteration_s']:.0f} ms per iteration (" in looking.page.inner_text("#view h2")
    assert looking.page.evaluate("location.search") == "?folder=points&where=cluster.bandwidth+%3E%3D+10Gbps"
    looking.page.reload()
    looking.page.wait_for_selector("#view:has-text('3 of 6 finished points shown.')")
    looking.page.click("#job-start")
    looking.page.wait_for_selector("#job-result .files a")
    with looking.page.expect_download() as download:
        looking.page.click("text=points.json")
    assert json.loads(download.value.path().read_text(encoding="utf-8")) == document
