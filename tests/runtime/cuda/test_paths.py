"""Paths that mean the same on another machine and name nobody."""

from __future__ import annotations

from pathlib import Path

import pytest

from envlock.runtime.cuda.library_facts import PortablePaths
from envlock.runtime.host import Host

SITE = "/usr/local/lib/python3.12/dist-packages"


WRITTEN = [
    ("/opt/venv", "/opt/venv/lib/x.so", "{prefix}/lib/x.so"),
    ("/opt/venv", "/opt/venv2/lib/x.so", "{elsewhere}/x.so"),
    ("/home/alice/venv", "/home/alice/venv/lib/x.so", "{prefix}/lib/x.so"),
    ("/opt/venv", "/home/alice/cuda/x.so", "{elsewhere}/x.so"),
    ("/opt/venv", "/home/bob/cuda/x.so", "{elsewhere}/x.so"),
    ("/opt/venv", "/tmp/scratch/alice/x.so", "{elsewhere}/x.so"),
    ("/opt/venv", "/opt/alice/x.so", "{elsewhere}/x.so"),
    ("/opt/venv", "/usr/local/alice/x.so", "{elsewhere}/x.so"),
    ("/opt/venv", "/usr/local/cuda-alice/x.so", "{elsewhere}/x.so"),
    ("/opt/venv", "/usr/local/cuda-12.5/lib64/x.so", "/usr/local/cuda-12.5/lib64/x.so"),
    ("/opt/venv", "/usr/local/cuda/lib64/x.so", "/usr/local/cuda/lib64/x.so"),
    ("/opt/venv", "/opt/nvidia/lib/x.so", "/opt/nvidia/lib/x.so"),
    ("/opt/venv", "/lib64/x.so", "/lib64/x.so"),
    ("/opt/venv", "/usr/lib/x.so", "/usr/lib/x.so"),
    ("/usr", "/usr/lib/x86_64-linux-gnu/x.so", "/usr/lib/x86_64-linux-gnu/x.so"),
    ("/usr", f"{SITE}/nvidia/x.so", "{prefix}/local/lib/python3.12/dist-packages/nvidia/x.so"),
]


def test_written() -> None:
    host = Host(environ={"HOME": "/home/alice"}, path=["", SITE])
    found = [(prefix, path, PortablePaths(host, prefix).render_path(path)) for prefix, path, _ in WRITTEN]
    assert found == WRITTEN


def test_neither_a_relative_path_nor_a_linked_home_names_anybody(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = tmp_path / "alice/cuda_sdk_lib/bin/ptxas"
    real.parent.mkdir(parents=True)
    real.touch()
    (tmp_path / "home").symlink_to(tmp_path / "alice")
    monkeypatch.chdir(tmp_path / "alice")
    paths = PortablePaths(Host(environ={"HOME": str(tmp_path / "home")}, path=["", SITE]), "/opt/venv")
    for path in ("./cuda_sdk_lib/bin/ptxas", f"{tmp_path}/home/cuda_sdk_lib/bin/ptxas"):
        assert paths.render_path(paths.resolve_path(path)) == "{elsewhere}/ptxas"
