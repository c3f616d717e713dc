"""GPU facts under the policies: what is equal, what is not, and what cannot be told has exit codes of its own."""

from __future__ import annotations

import json
from typing import Any

import pytest

from envlock.lock.fact_models import GpuFacts
from envlock.runtime.collectors import Snapshot, gpu, take_snapshot
from envlock.runtime.gpu import probe
from envlock.runtime.judgement import judge
from tests.fakes.fake_nvml import Profile, profile, profile_names
from tests.fakes.replay import Machine

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from envlock.runtime.report import Report

    Take = Callable[..., Snapshot]

pytestmark = pytest.mark.processes

WORKING = [name for name in profile_names() if profile(name)["devices"]]
BROKEN = [name for name in profile_names() if not profile(name)["devices"]]
MATCH, MISMATCH, CANNOT_TELL = 0, 1, 4
EVIDENCE = {"python": {"version": "3.11.7"}, "packages": {"numpy": {"version": "1.26.4"}}}
H100 = "h100-80gb-hbm3__590__whole"


@pytest.fixture
def take(tmp_path: Path) -> Take:
    """Return what captures a machine with a profile (a name, a profile, or None for one without NVIDIA)."""
    count = iter(range(100))

    def taken(name: str | Profile | None, faults: str = "", **environ: str) -> Snapshot:
        folder = tmp_path / str(next(count))
        folder.mkdir()
        machine = Machine(folder, profile(name) if isinstance(name, str) else name, faults)
        if isinstance(name, str) and "wsl2" in name:
            machine.write("/dev/dxg", "")
        if isinstance(name, str) and "gvisor" in name:
            machine.write("/dev/nvidiactl", "")
        return take_snapshot(machine.host(**environ), {"gpu": gpu.collect})

    return taken


@pytest.fixture(scope="module")
def h100(tmp_path_factory: pytest.TempPathFactory) -> Snapshot:
    """Return the machine that most locks are from; it is captured once."""
    return take_snapshot(Machine(tmp_path_factory.mktemp("h100"), profile(H100)).host(), {"gpu": gpu.collect})


def judged(locked: Snapshot, live: Snapshot, policy: str = "strict") -> Report:
    document: dict[str, Any] = {
        "facts": {**locked.facts, **EVIDENCE},
        "unavailable": locked.unavailable,
        "policy": {"name": policy, "overrides": {}},
    }
    return judge(document, Snapshot({**live.facts, **EVIDENCE}, live.unavailable))


def changed(base: str, /, **fields: Any) -> Profile:
    loaded = profile(base)
    loaded["devices"] = [{**device, **fields} for device in loaded["devices"]]
    return loaded


@pytest.mark.parametrize("name", WORKING)
def test_facts_fit_the_format_and_a_machine_matches_itself(name: str, take: Take) -> None:
    first = take(name)
    GpuFacts.model_validate(first.facts["gpu"])
    report = judged(first, take(name))
    untold = name in ("t4__515__utility-only", "h100-80gb-hbm3__535__lost-1-of-2")  # no libcuda; a GPU that is lost
    assert (report.exit_code, report.of("error")) == (CANNOT_TELL if untold else MATCH, [])
    assert bool(report.findings) == untold


@pytest.mark.parametrize("name", BROKEN)
def test_a_driver_that_fails_leaves_the_answer_open(name: str, h100: Snapshot, take: Take) -> None:
    report = judged(h100, take(name))
    assert {finding.where.fact for finding in report.of("unknown")} >= {
        "gpu.driver_version",
        "gpu.devices",
        "gpu.visible",
    }


@pytest.mark.parametrize("faults", ["crash:nvmlDeviceGetName", "hang:nvmlInitWithFlags=60", "ret:nvmlInitWithFlags=18"])
def test_failures_alone_are_exit_code_four(
    faults: str, h100: Snapshot, take: Take, monkeypatch: pytest.MonkeyPatch
) -> None:
    if faults.startswith("hang"):
        monkeypatch.setattr(probe, "compute_limit", lambda gpus: 0.3)
    found = take(H100, faults)
    answers = {policy: judged(h100, found, policy).exit_code for policy in ("strict", "same-arch", "functional")}
    assert answers == {"strict": CANNOT_TELL, "same-arch": CANNOT_TELL, "functional": MATCH}


def test_no_gpu_where_the_lock_has_one_is_a_difference(h100: Snapshot, take: Take) -> None:
    none = take(None)
    assert judged(h100, none).exit_code == MISMATCH
    assert judged(none, h100).exit_code == MISMATCH
    assert judged(none, take(None)).exit_code == MATCH
    assert judged(h100, take(H100, CUDA_VISIBLE_DEVICES="")).exit_code == MISMATCH


@pytest.mark.parametrize(
    ("live", "strict", "same_arch"),
    [
        (changed(H100, memory_mib=81000), MATCH, MATCH),
        (changed(H100, memory_mib=40000), MISMATCH, MATCH),
        (changed(H100, vbios="96.00.A5.00.09", persistence=0, power_limit_milliwatts=500000), MATCH, MATCH),
        (changed(H100, virtualization=0), MATCH, MATCH),
        (changed(H100, name="H100 80GB HBM3"), MATCH, MATCH),
        (changed(H100, ecc=[0, 0]), MISMATCH, MATCH),
        (changed(H100, cores=14592), MISMATCH, MATCH),
        ("h200__590__whole", MISMATCH, MATCH),
        ("h100-80gb-hbm3__590__mig", MISMATCH, MISMATCH),
        ("l40s__595__whole", MISMATCH, MISMATCH),
        ("h100-80gb-hbm3__535__eight", MISMATCH, MISMATCH),
    ],
    ids=["memory", "half", "info", "virtualization", "old-name", "ecc", "cores", "h200", "mig", "l40s", "eight"],
)
def test_what_each_policy_lets_through(
    live: str | Profile, strict: int, same_arch: int, h100: Snapshot, take: Take
) -> None:
    found = take(live)
    assert judged(h100, found, "strict").exit_code == strict
    assert judged(h100, found, "same-arch").exit_code == same_arch
    assert judged(h100, found, "functional").exit_code == MATCH


def test_a_newer_driver_is_of_the_same_architecture(h100: Snapshot, take: Take) -> None:
    machine = profile(H100)
    machine["system"] = {"driver_version": "595.80", "nvml_version": "13.595.80", "cuda_driver_version": 13020}
    newer = take(machine)
    assert judged(h100, newer, "strict").exit_code == MISMATCH
    assert judged(h100, newer, "same-arch").exit_code == MATCH
    assert judged(newer, h100, "same-arch").exit_code == MISMATCH


def test_a_lost_gpu_leaves_the_answer_open(take: Take) -> None:
    whole = profile("h100-80gb-hbm3__535__lost-1-of-2")
    del whole["devices"][1]["errors"]
    report = judged(take(whole), take("h100-80gb-hbm3__535__lost-1-of-2"))
    assert [finding.where.fact for finding in report.findings] == ["gpu.devices.1"]
    assert report.exit_code == CANNOT_TELL


@pytest.mark.parametrize("name", ["h200__590__mig", "h100-80gb-hbm3__535__eight"])
def test_no_collector_records_a_uuid(name: str, tmp_path: Path) -> None:
    device = profile(name)["devices"][0]
    for one in filter(None, (device, *device.get("mig_devices", ()))):
        folder = tmp_path / one["uuid"]
        folder.mkdir()
        found = take_snapshot(Machine(folder, profile(name)).host(CUDA_VISIBLE_DEVICES=one["uuid"]))
        assert found.facts["gpu"]["visible"]["count"] >= 1
        assert "0000-4000-8000" not in json.dumps([found.facts, found.unavailable])
