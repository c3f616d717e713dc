"""The collector as a whole: when it asks, what it gives, and what it leaves behind."""

from __future__ import annotations

from pathlib import Path

import pytest

from envlock.runtime.collectors import gpu
from envlock.runtime.facts import iter_leaves, split
from envlock.runtime.gpu import probe
from envlock.runtime.host import Host
from tests.fakes.fake_nvml import profile
from tests.fakes.replay import Machine

pytestmark = pytest.mark.processes


def test_a_machine_without_nvidia_is_not_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(probe, "ask", lambda *_: pytest.fail("NVML was touched"))
    assert gpu.collect(Machine(tmp_path, None).host()) is None


def test_wsl2_with_a_gpu_of_another_maker_has_none(tmp_path: Path) -> None:
    machine = Machine(tmp_path, None)
    machine.write("/dev/dxg", "")
    assert gpu.collect(machine.host()) is None


def test_facts_of_a_whole_gpu(tmp_path: Path) -> None:
    facts = gpu.collect(Machine(tmp_path, profile("h100-80gb-hbm3__590__whole")).host())
    assert isinstance(facts, dict)
    version = facts.pop("binding")["version"]
    assert version
    assert facts == {
        "kernel_module": {"version": "590.48.01", "flavour": "open"},
        "surroundings": [],
        "driver_version": "590.48.01",
        "nvml": {"version": "13.590.48.01", "file_version": "590.48.01"},
        "cuda_driver_version": "13.1",
        "visible": {"count": 1, "device_order": "FASTEST_FIRST"},
        "devices": {
            "0": {
                "name": "H100 80GB HBM3",
                "architecture": "Hopper",
                "compute_capability": "9.0",
                "pci_device_id": "10de:2330",
                "pci_subsystem_id": "10de:16c1",
                "cores": 16896,
                "sm_count": 132,
                "memory_mib": 81559,
                "ecc": True,
                "mig": None,
                "virtualization": "pass-through",
                "info": {
                    "vbios": "96.00.A5.00.01",
                    "persistence": True,
                    "compute_mode": "default",
                    "power_limit_watts": 700,
                },
            }
        },
    }


def test_facts_of_a_mig_device(tmp_path: Path) -> None:
    facts = gpu.collect(Machine(tmp_path, profile("a100-sxm4-40gb__510__mig")).host())
    assert isinstance(facts, dict)
    assert list(facts["devices"]) == ["0"]
    assert facts["devices"]["0"]["sm_count"] == 42
    assert facts["devices"]["0"]["mig"] == {
        "profile": "3g.20gb",
        "sm_count": 42,
        "gpu_slices": 3,
        "compute_slices": 3,
        "memory_mib": 19968,
    }


@pytest.mark.parametrize("value", ["", "-1", "NoDevFiles"])
def test_hidden_gpus_are_none_and_the_driver_is_still_told(value: str, tmp_path: Path) -> None:
    machine = Machine(tmp_path, profile("t4__515__whole"))
    facts = gpu.collect(machine.host(CUDA_VISIBLE_DEVICES=value))
    assert isinstance(facts, dict)
    assert facts["visible"] == {"count": 0, "device_order": "FASTEST_FIRST"}
    assert facts["devices"] == {}
    assert facts["driver_version"] == "515.105.01"


def test_the_order_is_cudas(tmp_path: Path) -> None:
    loaded = profile("t4__515__whole")
    other = profile("rtx-3090__525__whole")["devices"][0]
    loaded["devices"].append({**other, "uuid": "GPU-00000000-0000-4000-8000-000000000001"})
    machine = Machine(tmp_path, loaded)

    def names(**environ: str) -> list[str]:
        facts = gpu.collect(machine.host(**environ))
        assert isinstance(facts, dict)
        return [device["name"] for device in facts["devices"].values()]

    assert names(CUDA_VISIBLE_DEVICES="1,0", CUDA_DEVICE_ORDER="PCI_BUS_ID") == ["GeForce RTX 3090", "Tesla T4"]
    assert names(CUDA_VISIBLE_DEVICES="1", CUDA_DEVICE_ORDER="PCI_BUS_ID") == ["GeForce RTX 3090"]
    assert names(CUDA_VISIBLE_DEVICES=other["uuid"][:-1] + "1") == ["GeForce RTX 3090"]
    assert names() == ["Tesla T4", "GeForce RTX 3090"]


def test_every_leaf_is_a_fact(tmp_path: Path) -> None:
    machine = Machine(tmp_path, profile("rtx-3090__550__wsl2"))
    machine.write("/dev/dxg", "")
    facts = gpu.collect(machine.host())
    assert isinstance(facts, dict)
    kept, unavailable = split(facts)
    for path, value in iter_leaves(kept):
        items = value if isinstance(value, list) else [value]
        assert all(item is None or isinstance(item, (str, int, bool)) for item in items), path
    untold = {"ecc", "mig", "virtualization", "info.persistence", "info.vbios"}
    assert set(unavailable) == {f"devices.0.{name}" for name in untold}


def nodes() -> list[str]:
    return sorted(path.name for path in Path("/dev").glob("nvidia*"))


def test_nothing_is_made_on_this_very_machine() -> None:
    before = nodes()
    gpu.collect(Host())
    assert nodes() == before


@pytest.mark.skipif(bool(nodes()), reason="this machine has a driver")
def test_on_a_machine_without_a_driver_no_child_is_started(monkeypatch: pytest.MonkeyPatch) -> None:
    if any(Path(path).exists() for path in ("/sys/module/nvidia", "/dev/dxg")):
        pytest.skip("this machine has an NVIDIA driver")
    monkeypatch.setattr(probe, "ask", lambda *_: pytest.fail("NVML was touched"))
    assert gpu.collect(Host()) is None
