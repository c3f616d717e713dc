"""Files that code at the start of Python opens: no fact's text says what is in them."""

from __future__ import annotations

import json
import sys
import venv
from pathlib import Path

import pytest

from envlock.runtime.loaded import startup_files
from tests.conftest import Command
from tests.loaded.environment import Environment
from tests.machines import write

REPOSITORY = Path(__file__).parents[2]
LINE_1 = "import envlock\nenvlock.assert_locked(policy='strict')\nprint('went on')\n"


def run_at_start(made: Environment, code: str) -> None:
    write(made.folder, {"site-packages/sitecustomize.py": code})


def read_locked(made: Environment) -> list[str]:
    document = json.loads((made.folder / "envlock.lock").read_bytes())
    found: list[str] = document["facts"]["loaded"].get("startup", [])
    return [each.rpartition(" ")[0] for each in found]


def test_a_file_that_a_line_of_a_pth_file_executes_is_held_by_its_content(envlock: Command, tmp_path: Path) -> None:
    made = Environment(envlock, tmp_path)
    venv.create(tmp_path / ".venv")
    (site,) = (tmp_path / ".venv/lib").glob("python3*/site-packages")
    write(tmp_path, {"hook.py": "pass\n"})
    write(site, {"zz.pth": f"import os; exec(open({str(tmp_path / 'hook.py')!r}).read())\n"})
    interpreter = str(tmp_path / ".venv/bin/python")
    made.environ["PYTHONPATH"] += f":{REPOSITORY}"
    assert made.run("capture", "--python", interpreter).returncode == 0
    assert read_locked(made) == ["PREFIX/../hook.py"]
    script = Command([interpreter], tmp_path, made.environ)
    assert script("-c", LINE_1).stdout == "went on\n"
    assert made.run("verify", "--python", interpreter).stdout == "matches under policy strict\n"

    write(tmp_path, {"hook.py": "import math; math.sin = math.cos\n"})
    done = made.run("verify", "--python", interpreter, "--policy", "strict")
    words = f"x loaded.startup: not the locked file: {tmp_path}/hook.py: zz.pth opens it at the start of Python"
    assert words in done.stdout
    (tmp_path / "hook.py").write_text("import math\n", encoding="utf-8")
    refused = script("-c", LINE_1)
    assert (refused.returncode, refused.stdout) == (1, ""), refused.stderr
    assert "x loaded.startup: not the locked file: PREFIX/../hook.py" in refused.stderr
    (tmp_path / "hook.py").unlink()
    assert "x loaded.startup" in script("-c", LINE_1).stderr
    assert "PREFIX/../hook.py is not loaded" in made.run("verify", "--python", interpreter).stdout


def test_another_file_that_code_at_the_start_opens_by_now_is_a_difference(environment: Environment) -> None:
    hooks = environment.folder / "hooks"
    hooks.mkdir()
    run_at_start(environment, f"import glob\nfor each in glob.glob('{hooks}/*.py'): exec(open(each).read())\n")
    environment.run("capture")
    assert (read_locked(environment), environment.ask()) == ([], [])
    write(hooks, {"new.py": "X = 1\n"})
    (line,) = environment.ask()
    assert (
        line
        == f"x loaded.startup: not the locked file: {hooks}/new.py: sitecustomize.py opens it at the start of Python"
    )


ASKS = ("os.path.exists({flag!r})", "os.access({flag!r}, os.R_OK)", "pathlib.Path({flag!r}).is_file()")


@pytest.mark.parametrize("asks", ASKS)
def test_code_at_the_start_that_asks_only_whether_a_file_exists_is_seen_to_act(
    environment: Environment, asks: str
) -> None:
    """Nothing opens the file, so that an earlier observation was believed."""
    flag, hook = environment.folder / "flag", environment.folder / "hook.py"
    hook.touch()
    run_at_start(environment, f"import os, pathlib\nif {asks.format(flag=str(flag))}: open({str(hook)!r})\n")
    environment.run("capture")
    assert (read_locked(environment), environment.ask()) == ([], [])
    flag.touch()
    (line,) = environment.ask()
    assert line == f"x loaded.startup: not the locked file: {hook}: sitecustomize.py opens it at the start of Python"
    flag.unlink()
    assert environment.ask() == []


@pytest.mark.parametrize("place", ["sitecustomize.py", "hooks.dist-info/hook.py"])
def test_a_file_with_a_name_that_facts_hold_elsewhere_is_listed(environment: Environment, place: str) -> None:
    """It was taken for the module, or the metadata of a package, by its name alone."""
    write(environment.folder / "other", {place: "X = 1\n"})
    run_at_start(environment, f"exec(open({str(environment.folder / 'other' / place)!r}).read())\n")
    environment.run("capture")
    (name,) = read_locked(environment)
    assert name.endswith(place)


OPENED = """
import colorsys, helper, numpy, os, sys
for path in (numpy.__file__, os.__file__, "/proc/self/status", sys.executable + "/gone", os.getcwd()):
    try:
        open(path).close()
    except OSError:
        pass
open(os.path.join({folder!r}, "log"), "a").close()
"""


def test_what_other_facts_hold_is_not_listed(environment: Environment) -> None:
    """Modules that the code imports, packages, the standard library, the kernel, and what is only written."""
    write(environment.folder, {"site-packages/helper.py": "X = 1\n"})
    run_at_start(environment, OPENED.format(folder=str(environment.folder)))
    for _ in range(2):  # once from the source, and once compiled
        assert environment.run("capture").returncode == 0
        assert read_locked(environment) == []
    assert list((environment.folder / "site-packages/__pycache__").glob("helper.*"))


def test_a_name_says_where_a_file_lies_but_not_whose_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "prefix", "/srv/env")
    monkeypatch.setattr(sys, "base_prefix", "/usr")
    monkeypatch.setenv("HOME", "/home/ada")
    names = {
        "/srv/env/etc/a b.py": "PREFIX/etc/a b.py",
        "/srv/hook.py": "PREFIX/../hook.py",
        "/usr/share/hook.py": "BASE/share/hook.py",
        "/home/ada/hook.py": "~/hook.py",
        "/home/bob/hook.py": "elsewhere/hook.py",
        "/opt/hook.py": "/opt/hook.py",
        "/opt/\x1b.py": "elsewhere",
    }
    assert {path: startup_files.name_file(path) for path in names} == names
    found = [startup_files.ABSENT if path.startswith(("elsewhere",)) else path for path in names.values()]
    entries = [f"{name} sha256:0" for name in found]
    assert all(each.endswith(" absent") for each in startup_files.look_at_files(entries[:4]))
    unfound = ["elsewhere/hook.py sha256:0", "elsewhere sha256:0"]
    assert startup_files.look_at_files(unfound) == sorted(unfound), "only a process that watches its start finds them"
