"""Which versions an installer would change: what pip and uv say, and what may be asked for."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement

from envlock.guest import launch
from envlock.guest.launch import Ended
from envlock.packages import upgrade_resolution
from envlock.packages.installation import Installation
from envlock.packages.overlay import build_environ, find_unreached
from envlock.packages.upgrade_resolution import parse_wishes, resolve_compatible, resolve_upgrade
from envlock.runtime.errors import OutsideError, UsageError

REPORT = {"install": [{"metadata": {"name": "Keras_Nlp", "version": "1.0"}}]}
NO_PIP = b"python: No module named pip"


def answer(monkeypatch: pytest.MonkeyPatch, *answers: Ended) -> list[list[str]]:
    """Let installers answer so; return what they are asked."""
    asked: list[list[str]] = []
    left = list(answers)

    def ask(words: list[str], python: Path, *, timeout: float) -> Ended:
        asked.append(words)
        return left.pop(0)

    monkeypatch.setattr(launch, "ask", ask)
    return asked


def ended(code: int, output: bytes = b"", errors: bytes = b"") -> Ended:
    return Ended(code, output, errors, 1.0)


def test_pips_report_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = answer(monkeypatch, ended(0, json.dumps(REPORT).encode()))
    assert resolve_upgrade(parse_wishes(["keras-nlp==1"], []), None) == {"keras-nlp": "1.0"}
    assert asked[0][-2:] == ["--", "keras-nlp==1"]
    assert "--dry-run" in asked[0]


def test_uv_answers_without_pip(monkeypatch: pytest.MonkeyPatch) -> None:
    lines = b"Would install 1 package\n - keras==3.8.0\n + keras==3.15.1\n"
    answer(monkeypatch, ended(1, errors=NO_PIP), ended(0, errors=lines))
    monkeypatch.setattr(shutil, "which", lambda name: "/bin/uv")
    assert resolve_upgrade(parse_wishes(["keras"], []), None) == {"keras": "3.15.1"}


def test_uv_upgrades_only_what_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = answer(monkeypatch, ended(1, errors=NO_PIP), ended(0, errors=b" + keras==3.15.1\n"))
    monkeypatch.setattr(shutil, "which", lambda name: "/bin/uv")
    resolve_upgrade(parse_wishes(["keras==3.15.1"], []), None)
    assert "--upgrade-package=keras" in asked[1]
    assert "--upgrade" not in asked[1]


REQUIRED = [("tensorflow 2.21.0", Requirement("h5py<3.15.0"))]


@pytest.mark.parametrize("fits", [True, False])
def test_no_package_is_taken_along_that_breaks_another_one(monkeypatch: pytest.MonkeyPatch, fits: bool) -> None:
    def report(**versions: str) -> bytes:
        return json.dumps({"install": [{"metadata": {"name": k, "version": v}} for k, v in versions.items()]}).encode()

    second = ended(0, report(keras="3.12.0")) if fits else ended(1, errors=b"ERROR: no")
    asked = answer(monkeypatch, ended(0, report(keras="3.12.0", h5py="3.16.0")), second)
    monkeypatch.setattr(upgrade_resolution, "iter_unmet", lambda environment, versions: REQUIRED)
    found = resolve_compatible(parse_wishes(["keras==3.12.0"], []), Installation(Path(), (), {}), None)
    assert found == ({"keras": "3.12.0"} if fits else {"keras": "3.12.0", "h5py": "3.16.0"})
    assert asked[1][-2:] == ["keras==3.12.0", "h5py<3.15.0"]


def test_a_package_that_is_named_is_installed_whatever_requires_another(monkeypatch: pytest.MonkeyPatch) -> None:
    answer(
        monkeypatch, ended(0, json.dumps({"install": [{"metadata": {"name": "h5py", "version": "3.16.0"}}]}).encode())
    )
    monkeypatch.setattr(upgrade_resolution, "iter_unmet", lambda environment, versions: REQUIRED)
    wishes = parse_wishes(["h5py==3.16.0"], [])
    assert resolve_compatible(wishes, Installation(Path(), (), {}), None) == {"h5py": "3.16.0"}


@pytest.mark.parametrize("output", [b"", b"[]", b"{}", b'{"install": [{}]}', b'{"install": 1}'])
def test_a_report_that_is_none_is_refused(output: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    answer(monkeypatch, ended(0, output))
    with pytest.raises(OutsideError, match="cannot be read"):
        resolve_upgrade(parse_wishes(["keras"], []), None)


def test_versions_that_do_not_fit_are_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    answer(monkeypatch, ended(1, errors=b"ERROR: No matching distribution found for keras==99"))
    with pytest.raises(OutsideError, match=r"no versions fit keras==99: .*No matching"):
        resolve_upgrade(parse_wishes(["keras==99"], []), None)


@pytest.mark.parametrize("text", ["", "-r x", "--index-url=http://x", "keras @ http://x", "a[b]", "a; x", "a b"])
def test_only_names_with_versions_can_be_asked_for(text: str) -> None:
    with pytest.raises(UsageError, match="not a package with a version"):
        parse_wishes([text], [])


def test_a_tensorflow_is_the_installed_one() -> None:
    (wish,) = parse_wishes(["tensorflow==2.21"], ["tensorflow-cpu", "keras"])
    assert str(wish) == "tensorflow-cpu==2.21"
    assert [str(wish) for wish in parse_wishes(["tensorflow"], [])] == ["tensorflow"]


@pytest.mark.parametrize(
    ("names", "found"),
    [(["keras/a.py"], None), (["nvidia/cudnn/a.so"], "nvidia/"), (["a.pth"], "a.pth"), (["nvidia.py"], None)],
)
def test_what_does_not_come_from_an_overlay_is_seen(names: list[str], found: Any, tmp_path: Path) -> None:
    for name in names:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    assert find_unreached(tmp_path) == found


def test_overlays_stand_before_the_users_own_path(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", "/own")
    monkeypatch.setenv("XLA_FLAGS", "--a")
    environ = build_environ([Path("/one"), Path("/two")], {"XLA_FLAGS": None, "OMP_NUM_THREADS": "2"})
    assert environ["PYTHONPATH"] == "/one:/two:/own"
    assert "XLA_FLAGS" not in environ
    assert (environ["OMP_NUM_THREADS"], environ["ENVLOCK_MODE"]) == ("2", "off")
