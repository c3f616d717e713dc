"""The environment with the hosts: they and a wheel of this checkout, as a user has them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.conftest import Command, absent

HOSTS_PYTHON = "ENVLOCK_TEST_HOSTS"
"""Names the interpreter of an environment with IPython, MLflow and pytest; `make test` makes and sets it."""


@pytest.fixture
def hosts(tmp_path: Path) -> Command:
    """Return that interpreter, run in an empty folder; its absence is a failure in CI, a loud skip elsewhere."""
    named = os.environ.get(HOSTS_PYTHON)
    if named and Path(named).exists():
        return Command([named], tmp_path)
    return absent(f"no environment with the hosts: `make test` makes one and names it in {HOSTS_PYTHON}")


@pytest.fixture
def locked_hosts(hosts: Command, envlock: Command) -> Command:
    """Return it with a lockfile of it in the folder."""
    done = envlock("capture", "--quiet", "--python", hosts.argv[0])
    assert (done.returncode, done.stderr) == (0, "")
    assert hosts.folder == envlock.folder
    return hosts
