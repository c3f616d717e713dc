"""Same in, same out: what a lock holds depends on the environment, not on who captures it, where and when."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Command
from tests.exhaustive import exhaustive

AMBIENT = "--ambient-caps=+dac_read_search"
VARIANTS = {
    "again": {},
    "other home": {"HOME": "/nonexistent"},
    "random hash seed": {"PYTHONHASHSEED": "random"},
    "other user name": {"USER": "mallory", "LOGNAME": "mallory", "HOSTNAME": "elsewhere"},
}
SHOWN = {
    "text_encoding": {"LC_ALL": "POSIX", "LANG": "de_DE.ISO-8859-1", "PYTHONUTF8": "0"},
    "time_zone": {"TZ": "Asia/Kathmandu"},
}
"""A fact that is shown and that no policy compares -> a setting that changes it, and nothing else."""


def capture(cli: Command, environ: dict[str, str], **how: Any) -> bytes:
    """Return what `envlock capture -o -` writes."""
    plain = {name: value for name, value in os.environ.items() if name in ("PATH", "HOME", "LANG")}
    prefix = how.pop("prefix", [])
    done: subprocess.CompletedProcess[bytes] = subprocess.run(
        [*prefix, *cli.argv, "capture", "-q", "-o", "-"],
        env={**plain, **cli.environ, **environ},
        capture_output=True,
        check=False,
        **how,
    )
    assert (0, b"") == (done.returncode, done.stderr)
    return done.stdout


@exhaustive
@pytest.mark.parametrize("environ", VARIANTS.values(), ids=VARIANTS.keys())
def test_another_setting_gives_the_same_bytes(cli: Command, environ: dict[str, str]) -> None:
    assert capture(cli, {}, cwd=cli.folder) == capture(cli, environ, cwd=cli.folder)


@exhaustive
@pytest.mark.parametrize("name", SHOWN)
def test_another_way_to_read_texts_and_clocks_is_one_fact(cli: Command, name: str) -> None:
    first, other = (json.loads(capture(cli, environ, cwd=cli.folder)) for environ in ({}, SHOWN[name]))
    assert first["facts"]["python"].pop(name) != other["facts"]["python"].pop(name)
    for each in (first, other):
        del each["facts"]["loaded"]["standard"]["encodings"]  # the codecs that ran
    assert first == other


def test_another_folder_and_umask_give_the_same_bytes(cli: Command, tmp_path: Path) -> None:
    strange = tmp_path / "with spaces and ünï"
    strange.mkdir()
    first = capture(cli, {}, cwd=tmp_path, umask=0o022)
    assert first == capture(cli, {}, cwd=strange, umask=0o077)
    assert first == capture(cli, {}, cwd="/")


OTHER_USERS = (
    ["unshare", "--user"],  # nobody in a namespace of its own
    # root only: nobody, who may still read root's folders
    [*["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"], "--inh-caps=+dac_read_search", AMBIENT],
)


def test_another_user_gives_the_same_bytes(cli: Command) -> None:
    ways = [
        way for way in OTHER_USERS if subprocess.run([*way, "true"], capture_output=True, check=False).returncode == 0
    ]
    if not ways:
        reason = "this system lets nobody become another user (neither unshare nor setpriv)"
        pytest.fail(reason) if os.environ.get("CI") else pytest.skip(reason)
    told = subprocess.run([*ways[0], "id", "-u"], capture_output=True, text=True, check=True)
    assert str(os.getuid()) != told.stdout.strip()
    assert capture(cli, {}, cwd=cli.folder) == capture(cli, {}, cwd=cli.folder, prefix=ways[0])


@exhaustive
def test_an_envlock_installed_elsewhere_gives_the_same_bytes(cli: Command, envlock: Command, python: Command) -> None:
    elsewhere = envlock("capture", "-o", "-", "--python", python.argv[0])
    assert capture(cli, {}, cwd=cli.folder) == elsewhere.stdout.encode()


def test_a_script_sees_what_the_command_line_sees(cli: Command, python: Command, lock: dict[str, Any]) -> None:
    (python.folder / "script.py").write_text("import envlock\nprint(envlock.assert_locked().match)\n", encoding="utf-8")
    (python.folder / "stray-1.0.dist-info").mkdir()
    for argv in (["script.py"], ["-c", "import envlock; print(envlock.assert_locked().match)"], ["-m", "script"]):
        done = python(*argv, environ={"PYTHONSAFEPATH": ""})
        assert (0, "True\n", "") == (done.returncode, done.stdout, done.stderr)
