"""Cores and memory that a process may use, in made-up trees of `/proc` and `/sys`."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from gcnsim.core.processes import cores
from gcnsim.core.resources import Resources, usable_resources

V1 = (
    "31 23 0:28 / /sys/fs/cgroup rw,relatime - tmpfs tmpfs rw\n"
    "32 31 0:29 {root} /sys/fs/cgroup/cpu,cpuacct rw,relatime shared:9 - cgroup cgroup rw,cpu,cpuacct\n"
    "33 31 0:30 {root} /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"
    "34 31 0:31 / /sys/fs/cgroup/systemd rw - cgroup cgroup rw,name=systemd\n"
)
V2 = "30 23 0:26 {root} /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n"
NO_LIMIT = "9223372036854771712"


@pytest.fixture(autouse=True)
def machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """64 cores and 256 GiB."""
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(64)), raising=False)
    monkeypatch.setattr(os, "sysconf", lambda name: {"SC_PAGE_SIZE": 4096, "SC_PHYS_PAGES": 2**26}[name])


def tree(system: Path, mounts: str, groups: str) -> Path:
    """A made-up system with these mounts, whose process is in these groups."""
    (system / "proc/self").mkdir(parents=True)
    (system / "proc/self/mountinfo").write_text(mounts)
    (system / "proc/self/cgroup").write_text(groups)
    return system


def limit(system: Path, path: str, value: str) -> None:
    place = system / "sys/fs/cgroup" / path
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text(f"{value}\n")


def v1(system: Path, group: str = "/a/b", root: str = "/") -> Path:
    return tree(system, V1.format(root=root), f"5:memory:{group}\n4:cpu,cpuacct:{group}\n1:name=systemd:/x\n0::/\n")


def v2(system: Path, group: str = "/a/b", root: str = "/") -> Path:
    return tree(system, V2.format(root=root), f"0::{group}\n")


def test_a_machine_without_control_groups_is_all_there(tmp_path: Path) -> None:
    assert usable_resources(tmp_path) == Resources(64, None, 2**38)


@pytest.mark.parametrize(
    ("quota", "found", "usable"),
    [("400000", 4.0, 4), ("50000", 0.5, 1), ("350000", 3.5, 3), ("12800000", 128.0, 64), ("-1", None, 64)],
)
def test_a_quota_of_version_1_limits_the_cores(tmp_path: Path, quota: str, found: float | None, usable: int) -> None:
    system = v1(tmp_path)
    limit(system, "cpu,cpuacct/a/b/cpu.cfs_quota_us", quota)
    limit(system, "cpu,cpuacct/a/b/cpu.cfs_period_us", "100000")
    assert usable_resources(system) == Resources(usable, found, 2**38)


@pytest.mark.parametrize(
    ("text", "found", "usable"),
    [("400000 100000", 4.0, 4), ("25000 50000", 0.5, 1), ("max 100000", None, 64), ("garbage", None, 64)],
)
def test_a_quota_of_version_2_limits_the_cores(tmp_path: Path, text: str, found: float | None, usable: int) -> None:
    system = v2(tmp_path)
    limit(system, "a/b/cpu.max", text)
    assert usable_resources(system) == Resources(usable, found, 2**38)


@pytest.mark.parametrize("above", ["", "a/"])
def test_the_tightest_of_all_groups_above_counts(tmp_path: Path, above: str) -> None:
    system = v2(tmp_path)
    limit(system, "a/b/cpu.max", "800000 100000")
    limit(system, f"{above}cpu.max", "200000 100000")
    limit(system, "a/b/memory.max", "max")
    limit(system, f"{above}memory.max", str(2**33))
    assert usable_resources(system) == Resources(2, 2.0, 2**33)


@pytest.mark.parametrize(("text", "found"), [(str(2**32), 2**32), (NO_LIMIT, 2**38), (str(2**40), 2**38)])
def test_a_limit_on_memory_counts_where_it_is_below_the_machines(tmp_path: Path, text: str, found: int) -> None:
    one, other = v1(tmp_path / "1"), v2(tmp_path / "2")
    limit(one, "memory/a/b/memory.limit_in_bytes", text)
    limit(other, "a/b/memory.max", text)
    assert usable_resources(one).memory_bytes == found
    assert usable_resources(other).memory_bytes == found


@pytest.mark.parametrize(
    ("group", "root"),
    [("/", "/"), ("/docker/abc", "/docker/abc"), ("/../other", "/"), ("/elsewhere", "/docker/abc")],
)
def test_a_container_finds_its_own_group_at_the_mounted_root(tmp_path: Path, group: str, root: str) -> None:
    one, other = v1(tmp_path / "1", group, root), v2(tmp_path / "2", group, root)
    limit(one, "cpu,cpuacct/cpu.cfs_quota_us", "300000")
    limit(one, "cpu,cpuacct/cpu.cfs_period_us", "100000")
    limit(other, "cpu.max", "300000 100000")
    assert usable_resources(one).cores == usable_resources(other).cores == 3


def test_a_group_below_a_mounted_root_is_found_by_the_rest_of_its_path(tmp_path: Path) -> None:
    system = v2(tmp_path, "/docker/abc/job", "/docker/abc")
    limit(system, "job/cpu.max", "500000 100000")
    assert usable_resources(system).cores == 5


def test_both_versions_side_by_side(tmp_path: Path) -> None:
    mounts = V1.format(root="/") + "41 31 0:38 / /sys/fs/cgroup/my\\040unified rw - cgroup2 cgroup2 rw\n"
    system = tree(tmp_path, mounts, "4:cpu,cpuacct:/a\n5:memory:/m\n0::/u\n")
    limit(system, "cpu,cpuacct/a/cpu.cfs_quota_us", "700000")
    limit(system, "cpu,cpuacct/a/cpu.cfs_period_us", "100000")
    limit(system, "my unified/u/memory.max", str(2**31))
    assert usable_resources(system) == Resources(7, 7.0, 2**31)


def test_the_affinity_counts_where_it_is_tighter(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {3, 4})
    system = v2(tmp_path)
    limit(system, "a/b/cpu.max", "400000 100000")
    assert usable_resources(system) == Resources(2, 4.0, 2**38)


def test_pools_have_as_many_processes_as_may_be_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gcnsim.core.processes.usable_resources", lambda: Resources(4, 4.5, 2**33))
    assert cores() == 4
