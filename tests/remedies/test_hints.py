"""Hints of errors, obeyed: the command that failed says what to type, and what is typed ends otherwise."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.cli.test_verify_command import captured
from tests.conftest import Command

pytestmark = [pytest.mark.processes, pytest.mark.longer]


class Case(NamedTuple):
    """A command that fails.

    Attributes:
        typed: its words.
        hint: what its hint has.
        obeyed: the words that are typed then.
        code: how the obeyed command ends.
        locked: whether there is a lockfile.
        again: whether the first command is typed once more, and ends so.
    """

    typed: str
    hint: str
    obeyed: str
    code: int = 0
    locked: bool = True
    again: int | None = None


CASES = (
    Case("verify", "create one with `envlock capture`", "capture", locked=False, again=0),
    Case("show envlock.lok", "create one with `envlock capture`", "capture -o envlock.lok", again=0),
    Case("verfy", "did you mean `verify`", "verify"),
    Case("verify -p strickt", "choose from: strict, bits, same-arch, functional", "verify -p strict"),
    Case("diff - -", "name a file or `live`", "diff envlock.lock live"),
    Case("run envlock.lock true", "envlock run envlock.lock -- ", "run envlock.lock -- true"),
    Case("export --format requirements", "--no-hashes` need no hashes", "export --format requirements --no-hashes"),
    Case("export --format requirement", "choose from: ", "export --format requirements --no-hashes"),
    Case("ignore numpy --reason x", "`envlock capture --only numpy`", "capture --only numpy"),
    Case("ignore cpu.flag --reason x", "did you mean `cpu.flags`", "ignore cpu.flags --reason x"),
    Case("ignore cpu.quota --reason ''", "say in one line", "ignore cpu.quota --reason it-throttles"),
    Case("explain cpu.flag", "did you mean `cpu.flags`", "explain cpu.flags"),
    Case("capture --only numpy", "run `envlock capture` without it first", "capture", locked=False, again=0),
    Case("lint nothing.py", "", "lint step.py"),
    Case("repeat step.py:nothing", "", "repeat step.py:step --runs 2"),
    Case("repeat step.py:step --runs 1", "use `--runs 2`", "repeat step.py:step --runs 2"),
    Case("repeat step.py:step --save old", "name a new folder", "repeat step.py:step --save new"),
)  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.typed)
def test_a_hint_is_obeyed(case: Case, envlock: Command, tmp_path: Path) -> None:
    if case.locked:
        (tmp_path / "envlock.lock").write_bytes(captured(tuple(envlock.argv)))
    (tmp_path / "pyproject.toml").write_text('[project]\nname = "x"\nversion = "1"\n', encoding="utf-8")
    (tmp_path / "step.py").write_text("def step():\n    return 1.0\n", encoding="utf-8")
    (tmp_path / "old").mkdir()
    (tmp_path / "old" / "file").touch()
    done = envlock(*shlex.split(case.typed))
    assert done.returncode not in (0, 70), done.stdout
    _, found, hint = done.stderr.partition("hint: ")
    assert found, done.stderr
    assert case.hint in hint
    after = envlock(*shlex.split(case.obeyed))
    assert after.returncode == case.code, after.stdout + after.stderr
    assert after.stderr != done.stderr
    if case.again is not None:
        assert envlock(*shlex.split(case.typed)).returncode == case.again
