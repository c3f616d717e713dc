"""A package beside the script is what `import` takes, so the installed one says nothing."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from envlock.runtime.collectors import COLLECTORS
from envlock.runtime.facts import Unavailable
from envlock.runtime.host import Host
from tests.machines import complete


@pytest.mark.parametrize("package", ["tensorflow", "numpy", "keras"])
@pytest.mark.parametrize("file", ["{}.py", "{}/__init__.py"])
def test_what_lies_beside_the_script_is_named(
    package: str, file: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine = complete(tmp_path / "machine")
    here = tmp_path / "here"
    place = here / file.format(package)
    place.parent.mkdir(parents=True)
    place.touch()
    monkeypatch.chdir(here)
    reason = f"a {package} beside the script or in the current folder is imported instead of the installed one"
    for first in ("", str(here)):
        host = Host(machine.root, machine.environ, [first, *machine.path], machine.environ)
        assert Unavailable(reason, "shadowed") == COLLECTORS[package](host)
    later = Host(machine.root, machine.environ, [*machine.path, str(here)], machine.environ)
    assert not isinstance(COLLECTORS[package](later), Unavailable)
    assert sys.modules.get(package) is None or package == "numpy"
