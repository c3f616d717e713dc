"""An environment with all of NVIDIA's libraries: proven, vendored, and rebuilt without a network."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.conftest import Command
from tests.real.test_cuda_install import INTERPRETERS
from tests.real.test_identity import BY_PIP, BY_UV, asking, hash_all, rebuild, rebuilt

__all__ = ["asking", "rebuilt"]  # fixtures
DEAD = {"HTTPS_PROXY": "http://127.0.0.1:9", "HTTP_PROXY": "http://127.0.0.1:9", "NO_PROXY": ""}


@pytest.mark.cuda_wheels
@pytest.mark.slow
@pytest.mark.parametrize("python", INTERPRETERS[:1], ids=[path.parents[1].name for path in INTERPRETERS[:1]])
def test_all_of_nvidias_wheels_are_proven_and_rebuilt_without_a_network(
    python: Path, envlock: Command, asking: dict[str, str], rebuilt: Path
) -> None:
    packages = hash_all(envlock, python, asking)
    assert {name: each["reason"] for name, each in packages.items() if each["proof"] != "file"} == {}
    assert sum(name.startswith("nvidia-") for name in packages) > 8
    for to, file, argv in (("pylock", "pylock.toml", BY_UV), ("requirements", "requirements.txt", BY_PIP)):
        written = envlock(
            *("export", "-f", to, "-o", file, "--wheelhouse", "wheelhouse"), environ={**asking, **DEAD}, timeout=600
        )
        assert written.returncode == 0
        rebuild(envlock, rebuilt / to, argv, {**asking, **DEAD})
