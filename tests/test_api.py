"""The Python API beside `assert_locked()`, and what a capture never holds."""

from __future__ import annotations

import json
import os
import pkgutil
from pathlib import Path
from typing import Any

import pytest

import envlock
from envlock.cli import COMMANDS
from envlock.lock import lock_text as lock_layout
from envlock.lock.creation import capture
from envlock.lock.document import dump
from envlock.reports import FORMATS
from envlock.runtime.collectors import take_snapshot
from envlock.runtime.judgement import judge
from tests.locks import document, encode
from tests.machines import complete, distribution, machine, write


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "x.lock"
    path.write_bytes(encode(document()))
    return path


def test_load_gives_the_lock(path: Path) -> None:
    lock = envlock.load(path)
    assert (lock.to_document(), lock.policy.name) == (document(), "strict")
    assert envlock.load(str(path)) == lock


def test_load_without_a_path_takes_the_variable(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ENVLOCK_LOCK", str(path))
    assert envlock.load() == envlock.load(path)


def test_capture_then_verify_matches_in_memory_and_from_a_file(tmp_path: Path) -> None:
    lock = envlock.capture("same-arch", {"cpu.*": "ignore"})
    assert (lock.policy.name, lock.policy.overrides) == ("same-arch", {"cpu.*": "ignore"})
    (tmp_path / "x.lock").write_bytes(dump(lock))
    for source in (lock, tmp_path / "x.lock", str(tmp_path / "x.lock")):
        report = envlock.verify(source)
        assert (report.match, report.policy, report.findings) == (True, "same-arch", [])
    assert envlock.verify(lock, "functional").policy == "functional"


def test_diff_names_its_sides(path: Path, tmp_path: Path) -> None:
    other = tmp_path / "y.lock"
    other.write_bytes(encode(document(facts={**document()["facts"], "tensorflow": {"version": "2.21.0"}})))
    report = envlock.diff(path, str(other))
    assert report.to_text().splitlines()[1] == f"  x tensorflow: {path} none, {other} 2.21.0"
    assert envlock.diff(envlock.load(path), path).findings == []


@pytest.mark.parametrize("name", ["diff", "verify"])
def test_an_unknown_policy_is_wrong_use(name: str, path: Path) -> None:
    ask: dict[str, Any] = {"diff": lambda: envlock.diff(path, path, "x"), "verify": lambda: envlock.verify(path, "x")}
    with pytest.raises(envlock.UsageError) as caught:
        ask[name]()
    assert (caught.value.message, caught.value.hint) == (
        "unknown policy `x`",
        "choose from: strict, bits, same-arch, functional",
    )


def test_an_unknown_format_is_wrong_use(path: Path) -> None:
    with pytest.raises(envlock.UsageError) as caught:
        envlock.render(envlock.diff(path, path), "xml")
    assert (caught.value.message, caught.value.hint) == (
        "unknown format `xml`",
        f"choose from: {', '.join(FORMATS)}",
    )


# --- what the facade offers

FUNCTIONS = {
    "init": ["init"],
    "capture": ["capture"],
    "show": ["load"],
    "diff": ["diff"],
    "explain": ["explain", "allowed"],
    "ignore": ["ignore"],
    "verify": ["verify"],
    "sync": ["sync"],
    "run": ["prepare"],
    "fleet": ["prepare_fleet", "report_rank", "check_fleet"],
    "doctor": ["doctor"],
    "lint": ["lint"],
    "repeat": ["repeat", "compare_saved"],
    "diverge": ["diverge_script", "record_trace", "compare_traces"],
    "canary": ["canary"],
    "bisect": ["bisect"],
    "upgrade": ["upgrade"],
    "build": ["build", "context", "dockerfile", "rebuild"],
    "images": ["base_images"],
    "export": ["export", "vendor"],
}
"""What does for a program what a command does for a person."""


def test_there_is_a_function_for_every_command() -> None:
    assert list(FUNCTIONS) == list(COMMANDS)
    for name in (name for names in FUNCTIONS.values() for name in names):
        assert not getattr(envlock, name).__module__.startswith("envlock.cli.")


def test_every_public_name_has_a_docstring() -> None:
    texts = {name: getattr(envlock, name).__doc__ or "" for name in envlock.__all__ if name != "__version__"}
    made = {name for name, text in texts.items() if text.startswith(f"{name}(")}  # of a dataclass without one
    assert {name for name, text in texts.items() if not text} | made == set()


def test_no_public_name_is_that_of_a_room() -> None:
    """Importing a module of the room would put the room in the place of the function."""
    rooms = {module.name for module in pkgutil.iter_modules(envlock.__path__)}
    assert rooms & set(envlock.__all__) == set()


# --- same in, same out; private


def test_the_same_machine_gives_the_same_bytes_whatever_else_is_set(tmp_path: Path) -> None:
    plain = dump(capture(live=take_snapshot(complete(tmp_path))))
    other = {
        "LANG": "de_DE.UTF-8",
        "TZ": "Asia/Tokyo",
        "HOME": "/nowhere",
        "USER": "someone",
        "PYTHONHASHSEED": "random",
    }
    host = complete(tmp_path, other)
    mask, folder = os.umask(0o777), Path.cwd()
    try:
        os.chdir("/")
        assert dump(capture(live=take_snapshot(host))) == plain
    finally:
        os.chdir(folder)
        os.umask(mask)


SECRET = "ENVLOCK-PLANTED-MARKER"  # upper case, so that no name it could be folded into passes unseen


def test_no_secret_of_the_machine_is_in_lock_report_or_text(tmp_path: Path) -> None:
    url = f"https://{SECRET}:{SECRET}@example.org/x.git?token={SECRET}#{SECRET}"
    site, source = tmp_path / "site", tmp_path / SECRET / "src"
    write(source, {".git/config": f'[remote "origin"]\n url = {url}\n', ".git/HEAD": "0a" * 20})
    editable = {"url": source.as_uri(), "dir_info": {"editable": True}}
    distribution(site, "mine", "1.0", {"direct_url.json": json.dumps(editable)})
    distribution(site, "theirs", "1.0", {"direct_url.json": json.dumps({"url": url, "vcs_info": {"vcs": "git"}})})
    distribution(site, "wheel", "1.0", {"direct_url.json": json.dumps({"url": f"file:///{SECRET}/x.whl"})})
    distribution(site, "broken", "1.0", {"direct_url.json": url, "INSTALLER": "pip", "REQUESTED": SECRET})
    variables = dict.fromkeys(_variables(), f"/home/{SECRET}/x y")
    variables |= {"HOME": f"/home/{SECRET}", "PIP_INDEX_URL": url, "AWS_SECRET_ACCESS_KEY": SECRET, "USER": SECRET}
    files = {"proc/self/cgroup": f"0::/docker/{SECRET}\n", "etc/hostname": SECRET, "etc/pip.conf": f"index-url={url}"}
    host = machine(tmp_path / "root", files=files, environ=variables, site=site)
    lock = capture(live=take_snapshot(host))
    empty = {"facts": {}, "unavailable": {}, "policy": {"name": "strict", "overrides": {}}}
    report = judge(empty, take_snapshot(host))
    shown = {name: envlock.render(report, name) for name in FORMATS}
    shown["lock"] = dump(lock).decode()
    shown["shown lock"] = "\n".join(line for _, line in lock_layout.render_lock(lock.to_document()))
    shown["exception"] = report.to_text()
    assert [name for name, text in shown.items() if SECRET.lower() in text.lower()] == []
    assert all("sha256:" in shown[name] for name in ("lock", "json"))  # the planted values were seen


def _variables() -> list[str]:
    from envlock.data.runtime_tables import load_variables

    return [row.name for row in load_variables()]
