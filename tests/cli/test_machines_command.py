"""`envlock capture --add-machine` and what follows from it, as a shell sees it."""

from __future__ import annotations

import json

import pytest

from tests.conftest import Command
from tests.locks import encode


@pytest.fixture
def elsewhere(envlock: Command) -> Command:
    """Return a folder with a lock that another machine could have written."""
    assert envlock("capture", "-q").returncode == 0
    path = envlock.folder / "envlock.lock"
    lock = json.loads(path.read_bytes())
    lock["facts"]["cpu"].update(model_name="Elsewhere", model="999", affinity_count=64)
    path.write_bytes(encode(lock))
    return envlock


def test_a_machine_is_added_to_a_lockfile_and_verify_says_which_it_is(elsewhere: Command) -> None:
    path = elsewhere.folder / "envlock.lock"
    assert elsewhere("verify").returncode == 1
    added = elsewhere("capture", "--add-machine")
    which = added.stderr.removeprefix("added to envlock.lock: ")
    assert (added.returncode, added.stdout, which[:16]) == (0, "", "machine 2 of 2: ")
    written = path.read_bytes()
    again = elsewhere("capture", "--add-machine")
    assert (again.returncode, again.stderr) == (0, f"envlock.lock has this machine already: {which}")
    found = elsewhere("verify")
    assert (found.returncode, found.stdout) == (0, f"matches under policy strict\n{which}")
    check = elsewhere("capture", "--check")
    assert (check.returncode, check.stderr, path.read_bytes()) == (0, "envlock.lock is up to date\n", written)
    assert f"\n{which}" in elsewhere("show").stdout
    assert elsewhere("diff", "envlock.lock", "live").returncode == 0
    assert json.loads(elsewhere("explain", "cpu.affinity_count", "-f", "json").stdout)[0]["locked"] != 64


def test_other_software_is_refused_and_nothing_is_written(elsewhere: Command) -> None:
    before = (elsewhere.folder / "envlock.lock").read_bytes()
    done = elsewhere(
        "capture",
        "--add-machine",
        environ={"TF_ENABLE_ONEDNN_OPTS": "0", "ENVLOCK_INDEX_URL": "https://example.org/simple"},
    )
    assert (done.returncode, done.stdout) == (1, "")
    lines = done.stderr.splitlines()
    assert lines[:2] == [
        "error: the software is not that of the lockfile: does not match under policy strict: 1 fact differs",
        "  x environ.TF_ENABLE_ONEDNN_OPTS: locked unset, live 0",
    ]
    assert lines[-1] == (
        "hint: install the locked software here, or renew the lockfile on one of its own machines; nothing was written"
    )
    assert (elsewhere.folder / "envlock.lock").read_bytes() == before


def test_a_lockfile_of_several_machines_is_renewed_on_one_of_them(elsewhere: Command) -> None:
    path = elsewhere.folder / "envlock.lock"
    lock = json.loads(path.read_bytes())
    other = {**lock["facts"]["cpu"], "model_name": "Third"}
    lock["machines"] = [{"facts": {"cpu": other, "system": lock["facts"]["system"]}, "unavailable": {}}]
    path.write_bytes(encode(lock))
    refused = elsewhere("capture")
    assert (refused.returncode, refused.stderr) == (
        2,
        "error: this machine is not one of the lockfile's 2 machines (Elsewhere (64 visible); Third (64 visible))\n"
        "hint: add it with `envlock capture --add-machine`, or write another file with `--output`\n",
    )
    assert elsewhere("capture", "--add-machine", "-q").returncode == 0
    renewed = elsewhere("capture", environ={"TF_ENABLE_ONEDNN_OPTS": "0"})
    assert (renewed.returncode, "3 machines" in renewed.stderr) == (0, True)
    now = json.loads(path.read_bytes())
    assert [now["facts"]["cpu"]["model_name"], now["machines"][0]["facts"]["cpu"]["model_name"]] == [
        "Elsewhere",
        "Third",
    ]
    assert now["facts"]["environ"]["TF_ENABLE_ONEDNN_OPTS"] == "0"


@pytest.mark.parametrize("option", [["--canary"], ["--only", "cpu"], ["-p", "bits"], ["--check"]])
def test_a_machine_is_added_and_nothing_else_changes(elsewhere: Command, option: list[str]) -> None:
    done = elsewhere("capture", "--add-machine", *option)
    assert (done.returncode, done.stderr.splitlines()[0]) == (
        2,
        "error: `--add-machine` changes nothing else, so it takes only `--output` and `--python`",
    )
