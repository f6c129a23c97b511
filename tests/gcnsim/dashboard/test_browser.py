"""Every page in a real browser: it loads, moves, says what the command line says, and is usable on a phone."""

from __future__ import annotations

import json
import re
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest

import gcnsim
from tests.dashboards import PATIENCE_MS, TOKEN, Looking, command_line

PAGES = (
    "/",
    "/?beside=25&figure=bandwidth",
    "/compare?a=a.yaml&b=b.yaml",
    "/plan?gpus=2&device=t4&method=pipegcn&target_iteration=&electricity=0.3USD/kWh&gpu_power=60W",
    "/sweep?folder=points",
    "/timeline?gpus=2",
    "/validation?runs=pipegcn,bns-gcn&measured_compute=measured",
)


def test_a_slider_moves_the_number_to_the_command_lines(looking: Looking) -> None:
    looking.open("/")
    before = looking.headline()
    looking.page.focus("#bandwidth")
    looking.page.keyboard.press("ArrowRight")
    looking.page.keyboard.press("ArrowRight")
    looking.page.wait_for_selector("#command:has-text('25Gbps')")
    after = looking.headline(before)
    content = command_line(*looking.page.inner_text("#command").split()[2:])
    best = min(content["results"], key=lambda row: row["epoch_s"])
    assert f"{1000 * best['iteration_s']:.0f} ms per iteration (" in after
    assert looking.page.evaluate("location.search") == "?bandwidth=25"
    looking.page.reload()
    looking.page.wait_for_selector("#picture .main-svg")
    assert looking.headline() == after
    assert looking.page.inner_text("#bandwidth-shown") == "25 Gbps"


TALLEST = 3_500
"""Pixels of a page of an answer on a wide screen."""


def test_the_whole_answer_is_taken_home(looking: Looking, tmp_path: Path) -> None:
    looking.open("/?gpus=2&methods=pipegcn")
    looking.headline()
    looking.page.click("#job-start")
    looking.page.wait_for_selector("#job-result .files a")
    shown = looking.page.inner_text("#job-result")
    assert [part for part in ("confidence: ", "No effect", "similar questions: ") if part not in shown] == []
    with looking.page.expect_download() as download:
        looking.page.click("text=answer.json")
    taken = json.loads(download.value.path().read_text(encoding="utf-8"))
    content = command_line(*looking.page.inner_text("#command").split()[2:])
    assert taken["results"] == content["results"]
    looking.page.focus("#bandwidth")
    looking.page.keyboard.press("ArrowRight")
    looking.page.wait_for_selector("#job-result.old")
    looking.page.keyboard.press("ArrowLeft")
    looking.page.wait_for_selector("#job-result:not(.old)")
    with looking.page.expect_download() as download:
        looking.page.click(".files >> text=answer.html")
    taken_home = tmp_path / "answer.html"
    download.value.save_as(taken_home)
    looking.page.goto(taken_home.as_uri())
    looking.page.wait_for_selector("#bandwidth .main-svg")
    assert looking.page.evaluate("document.documentElement.scrollHeight") < TALLEST
    looking.page.click("summary >> text=Timeline of the recommended setting")
    looking.page.wait_for_selector("#timeline .main-svg")


def test_a_question_is_pinned_and_the_next_compared_with_it(looking: Looking) -> None:
    looking.open("/?gpus=2&methods=pipegcn")
    looking.headline()
    looking.page.click("#pin-button")
    looking.page.wait_for_selector("#against:has-text('This is 1 times as fast.')")
    looking.page.focus("#gpus")
    looking.page.keyboard.press("ArrowRight")
    looking.page.wait_for_selector("#against:not(:has-text('This is 1 times'))")
    assert "reddit, 2 x t4 at 15Gbps, pipegcn " in looking.page.inner_text("#against")
    assert looking.page.locator("#rows table").count() == 2
    looking.page.wait_for_url("**pin=*")
    looking.page.click("#pin-button")
    looking.page.wait_for_selector("#against:empty", state="attached")
    assert looking.page.inner_text("#pin-button") == "Pin as A, to compare with"


def test_long_work_can_be_cancelled(looking: Looking) -> None:
    looking.open("/plan")
    looking.page.click("#job-start")
    looking.page.wait_for_selector("#job-status:not([hidden])")
    looking.page.click("#job-cancel")
    looking.page.wait_for_selector("#job-result .alert")
    assert looking.page.inner_text("#job-result .alert") == "cancelled"


def test_a_wrong_address_says_so_and_shows_the_first_question(looking: Looking) -> None:
    looking.open("/?gpus=<script>alert(1)</script>")
    assert looking.page.inner_text("p.alert").endswith("Shown instead: the first question.")
    assert "15 Gbps" in looking.headline()


def test_an_upload_that_no_reader_reads_is_refused(looking: Looking) -> None:
    looking.open("/?graph=")
    name = "<img src=x onerror=alert(1)>.exe"
    looking.page.set_input_files("#upload-file", {"name": name, "mimeType": "text/plain", "buffer": b"x"})
    looking.page.wait_for_selector("#upload p:has-text('its name says no format')")
    assert looking.page.query_selector("#upload img") is None
    looking.said[:] = [item for item in looking.said if "400" not in item]  # the browser names the refused request


# The rest repeats the frame of all pages; some 10 s each.
SLOW_PAGES = [pytest.param(path, "light", marks=pytest.mark.slow) for path in PAGES[1:]]


@pytest.mark.parametrize(("path", "scheme"), [(PAGES[0], "light"), (PAGES[5], "dark"), *SLOW_PAGES])
def test_pages_are_usable_by_ear_and_on_a_phone(chromium: Any, dashboard: str, path: str, scheme: str) -> None:
    context = chromium.new_context(viewport={"width": 1280, "height": 900}, color_scheme=scheme, bypass_csp=True)
    seen = Looking(context.new_page(), dashboard)
    seen.open(path)
    seen.settled(path)
    assert seen.page.evaluate("document.documentElement.scrollWidth") <= 1280
    if scheme == "light":
        seen.kept(path)
    faults, said = seen.faults(), list(seen.said)
    seen.page.set_viewport_size({"width": 390, "height": 844})
    seen.page.wait_for_function("document.documentElement.scrollWidth <= 390", timeout=15_000)
    if scheme == "light":
        seen.kept(path)
    context.close()
    assert (faults, said) == ([], [])


def test_an_answer_that_takes_longer_says_how_far_it_is_and_can_be_cancelled(looking: Looking) -> None:
    looking.open("/?methods=psc-gcn")
    before = looking.headline()
    looking.page.focus("#gpus")
    looking.page.keyboard.press("End")
    looking.page.wait_for_selector("#gpus-shown:text-is('64')")
    looking.page.wait_for_selector("#waited:has-text('0 of 1 run simulated')")
    looking.page.click("#wait-cancel")
    looking.page.wait_for_selector("#asked.old:not(.busy)")
    assert looking.page.inner_text("#alert") == "cancelled; what is dimmed is of earlier settings"
    assert looking.headline() == before
    assert not looking.page.is_visible("#waiting")
    looking.page.keyboard.press("Home")
    looking.page.focus("#gpus")
    looking.page.keyboard.press("Home")
    looking.page.wait_for_selector("#asked:not(.old):not(.busy)")
    assert looking.page.inner_text("#alert") == ""


def test_a_numbered_point_leads_to_its_answer(looking: Looking) -> None:
    looking.open("/plan?gpus=2&device=t4&method=pipegcn&target_iteration=")
    looking.page.wait_for_selector("#figure-0 .main-svg")
    link = looking.page.get_attribute("#job-result .rows .chosen a", "href")
    looking.page.locator("#figure-0 .points path").last.click(force=True)
    looking.page.wait_for_url(f"**{link}*")
    assert "Use pipegcn at " in looking.headline()


def test_an_old_answer_is_dimmed_until_the_new_one_is_there(looking: Looking) -> None:
    looking.open("/")
    before = looking.headline()
    looking.page.wait_for_selector("#asked:not(.busy)")
    held: list[Any] = []
    looking.page.route("**/_dash-update-component*", lambda route: held.append(route))
    looking.page.focus("#bandwidth")
    looking.page.keyboard.press("ArrowRight")
    looking.page.wait_for_selector("#asked.busy", timeout=1_000)
    opacity = "getComputedStyle(document.querySelector('#headline')).opacity"
    for _ in range(20):
        if looking.page.evaluate(opacity) == "0.4":
            break
        looking.page.wait_for_timeout(100)
    assert looking.page.evaluate(opacity) == "0.4"
    for route in held:
        route.continue_()
    looking.page.unroute("**/_dash-update-component*")
    looking.page.wait_for_selector("#asked:not(.busy)")
    assert looking.headline(before) != before


def test_a_wrong_value_marks_its_field_and_leaves_the_old_answer_dimmed(looking: Looking) -> None:
    looking.open("/?graph=")
    before = looking.headline()
    looking.page.fill("#beside", "-3")
    looking.page.keyboard.press("Enter")
    looking.page.wait_for_selector("#beside-wrong:has-text('is not allowed')")
    looking.page.wait_for_selector("#asked.old")
    assert looking.headline() == before
    looking.page.fill("#beside", "25")
    looking.page.keyboard.press("Enter")
    looking.page.wait_for_selector("#headline:has-text('At 25 Gbps')")
    looking.page.wait_for_selector("#asked:not(.old)")
    assert looking.page.inner_text("#beside-wrong") == ""
    looking.page.goto(f"{looking.address.rstrip('/')}/plan")
    looking.page.fill("input[id*=gpus]", "-1")
    looking.page.keyboard.press("Enter")
    looking.page.wait_for_selector(".wrong:has-text('--gpus: -1 is not allowed')")


def test_a_list_is_searched_and_back_shows_the_question_before(looking: Looking) -> None:
    looking.open("/")
    before = looking.headline()
    looking.page.wait_for_timeout(1_100)
    looking.page.click("#device")
    looking.page.wait_for_selector(".dash-dropdown-option")
    looking.page.keyboard.type("a100-80")
    looking.page.click(".dash-dropdown-option >> text=a100-80")
    looking.headline(before)
    looking.page.wait_for_selector("#command:has-text('--device a100-80')")
    assert "device=a100-80" in looking.page.evaluate("location.search")
    looking.page.go_back()
    looking.page.wait_for_selector("#headline:not(:empty)")
    assert looking.headline() == before
    assert looking.page.evaluate("location.search") == ""


def test_a_path_that_no_list_has_is_entered(looking: Looking) -> None:
    looking.open("/validation")
    entry = """input[id='{"field":"runs","of":"more"}']"""
    looking.page.fill(entry, "far/run")
    looking.page.press(entry, "Enter")
    looking.page.wait_for_selector("#command:has-text('gcnsim validate far/run')")
    looking.page.wait_for_selector(".wrong:has-text('far/run: does not exist')")
    assert looking.page.input_value(entry) == ""


def test_a_figure_is_downloaded_as_a_picture(looking: Looking) -> None:
    looking.open("/")
    looking.headline()
    looking.page.hover("#picture")
    with looking.page.expect_download() as download:
        looking.page.click("#picture .modebar-btn")
    assert download.value.suggested_filename == "gcnsim.png"


def test_the_link_to_a_page_is_copied(looking: Looking) -> None:
    looking.page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    looking.open("/?gpus=2&methods=pipegcn")
    looking.headline()
    looking.page.click("#here")
    for _ in range(50):
        if looking.page.evaluate("navigator.clipboard.readText()"):
            break
        looking.page.wait_for_timeout(100)
    assert looking.page.evaluate("navigator.clipboard.readText()") == looking.page.url


def test_fields_and_buttons_are_reached_by_the_keyboard(looking: Looking) -> None:
    looking.open("/timeline?gpus=2&worker=0")
    looking.settled("/timeline")
    reached = []
    for _ in range(40):
        looking.page.keyboard.press("Tab")
        reached.append(looking.page.evaluate("document.activeElement.id + document.activeElement.textContent"))
    assert reached[0].endswith("Skip to the page")
    assert "theme-buttonLight or dark" in reached
    assert "job-startDraw the timeline" in reached
    assert len({item for item in reached if '"field"' in item}) == 13
    assert any("timeline.json" in item for item in reached)


@pytest.mark.slow  # test_pages.py has what is said, and uploads are tried above
def test_an_altered_profile_is_refused_in_one_line(looking: Looking) -> None:
    looking.open("/?graph=&gpus=2")
    looking.headline()
    profile = bytearray(files("gcnsim").joinpath("data/profiles/yelp-2.profile").read_bytes())
    profile[len(profile) // 2] ^= 0xFF
    name = "../../<script>alert(1)</script>.profile"
    looking.page.set_input_files("#upload-file", {"name": name, "mimeType": "text/plain", "buffer": bytes(profile)})
    looking.page.wait_for_selector("#alert .alert")
    line = looking.page.inner_text("#alert .alert")
    assert line.startswith("upload:")
    assert "\n" not in line
    assert not any(word in line for word in ("Traceback", "script", "/tmp"))


def test_a_huge_upload_is_refused_in_one_line(looking: Looking, tmp_path: Path) -> None:
    huge = tmp_path / "huge.npz"
    with open(huge, "wb") as file:
        file.truncate(65 << 20)
    looking.open("/?graph=")
    looking.page.set_input_files("#upload-file", str(huge))
    looking.page.wait_for_selector("#upload p:has-text('The file is larger than 64 MiB: give its path instead.')")


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("/compare?a=../x&b=y", "../x: is outside the folder of the dashboard (--files); allowed: files below it"),
        ("/validation?runs=nothing", "nothing: does not exist below the folder of the dashboard (--files)"),
        ("/timeline?tau=<script>alert(1)</script>", "tau: '<script>alert(1)</script>' is not allowed; "),
        ("/sweep?by=" + "x" * 301, "at most 300 printable characters"),
    ],
)
def test_a_wrong_address_of_any_page_is_a_line(looking: Looking, path: str, message: str) -> None:
    looking.open(path)
    looking.page.wait_for_selector(".alert")
    line = looking.page.inner_text(".alert")
    assert message in line
    assert "\n" not in line


def test_a_token_opens_the_pages(chromium: Any, guarded: str) -> None:
    context = chromium.new_context(bypass_csp=True)
    page = context.new_page()
    page.goto(f"{guarded}?token=wrong")
    assert "This is not the token" in page.inner_text("body")
    assert Looking(page, guarded).faults() == []
    page.fill("input[name=token]", TOKEN)
    page.click("button")
    page.wait_for_selector("#headline:not(:empty)", timeout=PATIENCE_MS)
    assert re.fullmatch(r"http://[^/]+/", page.url)
    context.close()


def test_a_page_in_a_browser_without_decompression_says_so(chromium: Any, tmp_path: Path) -> None:
    gcnsim.what_if(gpus=2, method=["full-graph"], iterations=2, processes=1).to_html(tmp_path / "answer.html")
    page = chromium.new_page()
    page.add_init_script("delete window.DecompressionStream")
    page.goto((tmp_path / "answer.html").as_uri())
    page.wait_for_selector("#breakdown:has-text('This figure needs a newer browser.')", timeout=PATIENCE_MS)
    page.close()
