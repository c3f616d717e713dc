"""The system and Python collectors."""

from __future__ import annotations

import locale
import os
import platform
import sys
import sysconfig
from pathlib import Path
from typing import Any

import pytest

from envlock.lock.creation import capture
from envlock.runtime.collectors import python, system, take_snapshot
from envlock.runtime.host import Host
from envlock.runtime.startup import collect_startup
from tests.machines import machine


def facts(tmp_path: Path, files: dict[str, str | bytes], **environ: str) -> dict[str, Any]:
    return dict(system.collect(machine(tmp_path, files=files, environ=environ)))


def test_a_debian(tmp_path: Path) -> None:
    name, _, version = (os.confstr("CS_GNU_LIBC_VERSION") or "").partition(" ")
    assert facts(tmp_path, {}) == {
        "os": "debian",
        "os_version": "12",
        "kernel": platform.system(),
        "kernel_release": platform.release(),
        "machine": platform.machine(),
        "libc": name,
        "libc_version": version,
        "container": [],
    }


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("ID='ubuntu'\nVERSION_ID=\"22.04\"\n", ("ubuntu", "22.04")),
        ("# comment\n\nID=arch\n", ("arch", None)),
        ("garbage", (None, None)),
    ],
)
def test_os_release(text: str, expected: tuple[Any, Any], tmp_path: Path) -> None:
    found = facts(tmp_path, {"etc/os-release": text})
    assert (found["os"], found["os_version"]) == expected


def test_os_release_in_its_other_place(tmp_path: Path) -> None:
    found = facts(tmp_path, {"etc/os-release": "", "usr/lib/os-release": "ID=wolfi\n"})
    assert found["os"] == "wolfi"


def test_an_empty_machine_has_no_release(tmp_path: Path) -> None:
    found = system.collect(Host(str(tmp_path), {}, [], {}))
    assert (found["os"], found["os_version"], found["container"]) == (None, None, [])


@pytest.mark.parametrize(
    ("files", "environ", "evidence"),
    [
        ({".dockerenv": ""}, {}, ["/.dockerenv"]),
        ({"run/.containerenv": "engine=podman SECRET"}, {}, ["/run/.containerenv"]),
        ({".singularity.d/x": ""}, {"APPTAINER_CONTAINER": "SECRET"}, ["/.singularity.d", "APPTAINER_CONTAINER"]),
        ({}, {"KUBERNETES_SERVICE_HOST": "10.0.0.1"}, ["KUBERNETES_SERVICE_HOST"]),
        ({"proc/self/cgroup": "0::/kubepods/besteffort/podSECRET"}, {}, ["cgroup:kubepods"]),
        ({"proc/self/cgroup": "1:cpu:/docker/SECRET\n0::/containerd"}, {}, ["cgroup:containerd", "cgroup:docker"]),
        ({"proc/self/cgroup/folder": ""}, {}, []),
    ],
)
def test_container_evidence_names_the_rule_and_not_the_site(
    files: dict[str, str | bytes], environ: dict[str, str], evidence: list[str], tmp_path: Path
) -> None:
    if "proc/self/cgroup/folder" in files:
        (tmp_path / "proc/self/cgroup").mkdir(parents=True)
        found: Any = system.collect(Host(str(tmp_path), environ, [], {}))
    else:
        found = facts(tmp_path, files, **environ)
    assert found["container"] == evidence


def test_garbage_never_keeps_a_lock_from_being_made(tmp_path: Path) -> None:
    lock = capture(
        live=take_snapshot(machine(tmp_path, files={"etc/os-release": b"ID=\xff\x1b\nVERSION_ID=" + b"x" * 2000}))
    )
    assert sorted(lock.unavailable) == ["system.os", "system.os_version"]


def test_this_python(tmp_path: Path) -> None:
    suffix = sysconfig.get_config_var("EXT_SUFFIX")
    kind = "venv" if sys.prefix != sys.base_prefix else "system"
    assert python.collect(Host(str(tmp_path))) == {
        "implementation": sys.implementation.name,
        "version": platform.python_version(),
        "abi": suffix.removeprefix(".").removesuffix(".so"),
        "compiler": platform.python_compiler().strip(),
        "prefix_kind": "conda" if Path(sys.prefix, "conda-meta").is_dir() else kind,
        "startup": collect_startup(Host(str(tmp_path))),
        "shadows": {},
        "optimize": sys.flags.optimize,
        "hash": hash("envlock") if os.environ.get("PYTHONHASHSEED", "").isdigit() else None,
        "rounding": "nearest",
        "denormals": "kept",
        "time_zone": python._find_time_zone(),
        "text_encoding": locale.getpreferredencoding(False).lower(),
    }
