"""What line 1 of a script does not hold, and what holds it: docs/concepts/trust.md says why."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.loaded.environment import UNMEASURED, Environment, find_library
from tests.machines import distribution, write

LINE_1 = "import envlock\nenvlock.assert_locked(policy='strict')\n"
INFO = "site-packages/numpy-2.21.0.dist-info"
ZONE = "import zoneinfo\nprint(zoneinfo.ZoneInfo('Etc/Acme'))\n"


def rename_version(made: Environment) -> None:
    write(made.folder, {f"{INFO}/METADATA": "Metadata-Version: 2.1\nName: numpy\nVersion: 1.0\n"})


def build_otherwise(made: Environment) -> None:
    write(made.folder, {"site-packages/conda-meta/libblas-3.9.0-5_mkl.json": '{"build": "5_mkl"}'})


@pytest.mark.parametrize("act", [rename_version, build_otherwise])
def test_names_that_others_wrote_say_nothing(act: Callable[[Environment], None], environment: Environment) -> None:
    """The version of a package's folder counts, and of conda's packages what a process loads of them."""
    act(environment)
    done = environment.script(f"{LINE_1}import tensorflow\nprint('went on')")
    assert (done.returncode, done.stdout) == (0, "went on\n"), done.stderr


def test_a_package_without_its_files_is_missed_when_it_is_imported(environment: Environment) -> None:
    site = environment.folder / "site-packages"
    write(site, {"gast/__init__.py": ""})
    distribution(site, "gast", "0.6.0", {"INSTALLER": "pip\n", "RECORD": "gast/__init__.py,,\n"})
    environment.run("capture")
    shutil.rmtree(site / "gast")
    assert environment.script(LINE_1).returncode == 0
    done = environment.script(f"{LINE_1}import gast")
    assert (done.returncode, done.stderr.splitlines()[-1]) == (1, "ModuleNotFoundError: No module named 'gast'")


def test_a_program_that_imports_nothing_that_computes_is_compared_by_files(environment: Environment) -> None:
    """Nothing asks it what it has loaded: neither a module beside the script nor a library counts."""
    write(environment.folder, {"random.py": "print('another one')\n"})
    library = str(find_library("libm.so"))
    write(environment.folder, {"libm.so.6": Path(library).read_bytes() + b"\0"})
    code = f"{LINE_1}import ctypes, random\nctypes.CDLL({str(environment.folder / 'libm.so.6')!r})\n"
    plain = {"PYTHONSAFEPATH": "", **UNMEASURED}
    done = environment.script(code, **plain)
    assert (done.returncode, done.stdout) == (0, "another one\n"), done.stderr
    done = environment.script(f"{code}import tensorflow", **plain)
    assert done.returncode == 1
    assert "loaded.libm: not the locked file" in done.stderr
    assert "random.py: it is imported in place of Python's own" in done.stderr


def test_verify_does_not_know_which_program_is_started(environment: Environment) -> None:
    """A module beside the script counts where the script is started."""
    write(environment.folder, {"random.py": "print('another one')\n"})
    assert environment.run("verify").returncode == 0
    done = environment.script(f"{LINE_1}import random, tensorflow", PYTHONSAFEPATH="", **UNMEASURED)
    assert done.returncode == 1
    assert "random.py: it is imported in place of Python's own" in done.stderr


def test_the_rules_of_a_time_zone_are_data_and_held_as_data(environment: Environment) -> None:
    zones = environment.folder / "zones"
    rules = Path("/usr/share/zoneinfo")
    if not rules.is_dir():
        pytest.skip("the system has no rules of time zones")
    write(zones, {"Etc/Acme": (rules / "UTC").read_bytes()})
    asked = {"PYTHONTZPATH": str(zones)}

    def ask() -> list[str]:
        done = environment.script(f"{LINE_1}{ZONE}", **asked)
        assert (done.returncode, done.stdout) == (0, "Etc/Acme\n"), done.stderr
        return done.stderr.splitlines()

    environment.run("capture")
    write(zones, {"Etc/Acme": (rules / "Asia/Tokyo").read_bytes()})
    assert ask() == []
    write(environment.folder, {"pyproject.toml": '[tool.envlock]\ndata = ["zones/"]\n'})
    environment.run("capture")
    assert ask() == []
    write(zones, {"Etc/Acme": (rules / "Europe/Berlin").read_bytes()})
    assert ask()[0].startswith("envlock: warning: data at zones: ")


def test_a_module_of_python_that_no_import_at_the_capture_runs_is_not_held(environment: Environment) -> None:
    environment.run("capture", "-q")
    held = json.loads((environment.folder / "envlock.lock").read_text(encoding="utf-8"))["facts"]["loaded"]["standard"]
    assert ("random" in held, "statistics" in held) == (True, False)
