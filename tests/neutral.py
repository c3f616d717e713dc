"""The variables, programs and modes that tests find, whatever the machine has besides.

A test that reaches nothing but this checkout gets a home of its own, a PATH with TOOLS alone, and no variable that is not
named here. One that reaches the world (`WORLD`: an index, an engine, TensorFlow) keeps what a machine needs for that.
"""

from __future__ import annotations

import atexit
import os
import shutil
import sys
import tempfile
import time
from functools import cache
from pathlib import Path

TYPE_CHECKING = False
if TYPE_CHECKING:
    import pytest

WORLD = {"tensorflow", "slow", "engine", "signing"}
"""The markers of tests that reach more than this checkout."""

TOOLS = (
    *(
        "ar",
        "as",
        "awk",
        "bash",
        "basename",
        "cat",
        "cc",
        "chmod",
        "cmp",
        "cp",
        "cut",
        "date",
        "diff",
        "dirname",
        "echo",
        "env",
    ),
    *(
        "faketime",
        "false",
        "find",
        "gcc",
        "getconf",
        "git",
        "grep",
        "gzip",
        "head",
        "id",
        "jq",
        "kill",
        "ld",
        "ldconfig",
    ),
    *(
        "ln",
        "ls",
        "make",
        "mkdir",
        "mkfifo",
        "mktemp",
        "mount",
        "mv",
        "nice",
        "nohup",
        "openssl",
        "printf",
        "ps",
    ),
    *(
        "readelf",
        "readlink",
        "rm",
        "rmdir",
        "script",
        "sed",
        "seq",
        "setsid",
        "sh",
        "sleep",
        "sort",
        "stat",
        "strip",
        "stty",
    ),
    *(
        "tail",
        "tar",
        "taskset",
        "tee",
        "test",
        "timeout",
        "touch",
        "tr",
        "true",
        "umount",
        "uname",
        "unshare",
        "wc",
        "which",
    ),
    *("xargs", "xz", "yes", "zstd"),
)
"""The programs that tests start by their names; one that this machine lacks is left out."""

OWN = ("CI", "COVERAGE_", "ENVLOCK_TEST_", "HYPOTHESIS_", "MUTANT_", "PYTEST_", "TMPDIR")
"""The beginnings of the names of variables that are of the tests themselves."""

REACHING = (
    *("HOME", "PATH", "XDG_", "NETRC", "DOCKER_", "SSL_", "REQUESTS_", "CURL_", "PIP_", "UV_"),
    *("HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "no_proxy", "all_proxy"),
)
"""Of those by which a machine reaches an index, a registry or an engine."""

REFUSING = ("PIP_REQUIRE_VIRTUALENV", "PIP_USER", "PIP_TARGET", "PIP_PREFIX", "PIP_NO_", "UV_PYTHON", "UV_PROJECT")
"""Of those among them that decide what an installer does, not where it finds packages."""

LANG = {"LANG": "C.UTF-8"}


def drop_pythonpath() -> None:
    """Take the folders of PYTHONPATH off the import path: their modules would stand for those of the tests."""
    for folder in os.environ.get("PYTHONPATH", "").split(os.pathsep):
        if folder in sys.path:
            sys.path.remove(folder)


@cache
def _get_original() -> dict[str, str]:
    return dict(os.environ)


@cache
def _make_folder() -> Path:
    folder = Path(tempfile.mkdtemp(prefix="envlock-tests-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    for name in ("home", "bin"):
        (folder / name).mkdir()
    for name in TOOLS:
        found = shutil.which(name, path=_get_original().get("PATH"))
        if found is not None:
            (folder / "bin" / name).symlink_to(Path(found).absolute())
    return folder


@cache
def choose_variables(*, reaches_world: bool) -> dict[str, str]:
    """Return the variables of the tests."""
    beginnings = (*OWN, *REACHING) if reaches_world else OWN
    original = _get_original()
    names = [name for name in original if name.startswith(beginnings) and not name.startswith(REFUSING)]
    kept = {**LANG, **{name: original[name] for name in names}}
    if not reaches_world:
        folder = _make_folder()
        kept |= {"HOME": str(folder / "home"), "PATH": str(folder / "bin")}
    return kept


def neutralise(item: pytest.Item | None = None) -> None:
    """Set the variables, the time zone and the umask for one test, or for collecting all."""
    marks = {mark.name for mark in item.iter_markers()} if item is not None else set()
    wanted = choose_variables(reaches_world=bool(marks & WORLD))
    changing = {name: value for name, value in os.environ.items() if name.startswith("PYTEST_")}
    if {**wanted, **changing} != dict(os.environ):
        os.environ.clear()
        os.environ.update({**wanted, **changing})
    time.tzset()
    os.umask(0o022)
