"""The committed GPU profiles: their shape, their privacy, and what envlock makes of each."""

from __future__ import annotations

import re
from typing import Any

from envlock.runtime.facts import iter_leaves
from envlock.runtime.gpu import devices
from tests.fakes.fake_nvml import PROFILES, Profile, profile, profile_names, symbols
from tests.fakes.replay import capture

KINDS = {"recorded", "transcribed", "synthetic"}
TOP = {"schema", "provenance", "symbols", "system", "devices", "expect", "errors", "kernel"}
DEVICE = {
    "uuid", "name", "pci", "compute_capability", "architecture", "cores", "memory_mib", "reserved_mib", "ecc", "mig",
    "mig_slots", "mig_devices", "virtualization", "vbios", "persistence", "compute_mode", "power_limit_milliwatts",
    "errors",
}  # fmt: skip
INSTANCE = {"uuid", "name", "gpu_instance", "compute_instance", "memory_mib", "attributes"}

UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", re.IGNORECASE)
RESERVED = re.compile(r"00000000-0000-4000-8000-[0-9a-f]{12}")
IDENTITY_KEYS = re.compile(r"serial|pdi|bus_?id|board_?id|guid|chassis|minor|host|user", re.IGNORECASE)
LONG_NUMBER = re.compile(r"(?<![0-9A-Fa-f.x])(?:0x)?[0-9A-Fa-f]{12,}(?![0-9A-Fa-f.])")

WORKING = [name for name in profile_names() if profile(name)["devices"]]


def test_there_are_enough_of_them() -> None:
    kinds = [profile(name)["provenance"]["kind"] for name in WORKING]
    assert len(WORKING) >= 14
    assert sum(kind != "synthetic" for kind in kinds) >= 14


def test_shape() -> None:
    for name in profile_names():
        has_the_shape(name, profile(name))


def has_the_shape(name: str, loaded: Profile) -> None:
    assert loaded["schema"] == 1, name
    assert set(loaded) <= TOP
    assert re.fullmatch(r"[a-z0-9-]+__[0-9]+__[a-z0-9-]+", name)
    provenance = loaded["provenance"]
    assert provenance["kind"] in KINDS
    assert provenance["source"]
    assert isinstance(provenance["not_recorded"], list)
    assert symbols(loaded["symbols"])
    assert set(loaded["system"]) == {"driver_version", "nvml_version", "cuda_driver_version"}
    assert re.fullmatch(r"[0-9]+(\.[0-9]+)+", loaded["system"]["driver_version"])
    for device in loaded["devices"]:
        assert set(device) <= DEVICE
        assert set(device["pci"]) == {"device_id", "subsystem_id"}
        for instance in filter(None, device.get("mig_devices", ())):
            assert set(instance) == INSTANCE


def test_nothing_identifies_a_card() -> None:
    texts = {path.stem: RESERVED.sub("", path.read_text(encoding="utf-8")) for path in sorted(PROFILES.iterdir())}
    assert sorted(texts) == profile_names()
    assert [name for name, text in texts.items() if UUID.search(text)] == []
    assert [name for name, text in texts.items() if LONG_NUMBER.search(text)] == [], "a serial number or PDI?"
    assert [(name, key) for name in texts for key in _keys(profile(name)) if IDENTITY_KEYS.search(key)] == []


def _keys(node: Any) -> list[str]:
    if isinstance(node, dict):
        return [key for name, value in node.items() for key in (name, *_keys(value)) if name != "not_recorded"]
    return [key for item in node for key in _keys(item)] if isinstance(node, list) else []


def test_facts_are_those_expected() -> None:
    for name in WORKING:
        tree, expected = _tree(profile(name), wsl2="wsl2" in name), profile(name)["expect"]
        assert {path: repr(_at(tree, path)) for path in expected} == {path: repr(expected[path]) for path in expected}


def test_no_answer_and_no_fact_holds_an_identity() -> None:
    for name in WORKING:
        loaded = profile(name)
        assert not UUID.search(repr(list(iter_leaves(_tree(loaded))))), name
        for environ in ({}, {"CUDA_VISIBLE_DEVICES": loaded["devices"][0]["uuid"]}):
            assert not UUID.search(repr(capture(loaded, environ))), name


def test_one_card_under_two_systems_and_three_drivers_is_one_card() -> None:
    trees = [_tree(profile(f"rtx-2080-super__{shape}")) for shape in ("595__whole", "610__whole", "591__windows")]
    cards = [{**tree["devices"]["0"], "info": {**tree["devices"]["0"]["info"], "persistence": None}} for tree in trees]
    assert cards[0] == cards[1] == cards[2]


def _tree(loaded: Profile, *, wsl2: bool = False) -> dict[str, Any]:
    answer = {"status": "ok", "binding": {}, "library_version": None, **capture(loaded)}
    return devices.convert_answer(answer, wsl2=wsl2)


def _at(tree: Any, path: str) -> Any:
    for key in path.split("."):
        tree = tree[key]
    return tree
