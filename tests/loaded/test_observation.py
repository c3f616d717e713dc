"""What a process of the environment loads, as `capture` locks it and `verify` compares it; with a package in
TensorFlow's place, as only the files count.
"""

from __future__ import annotations

import ctypes.util
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from envlock.workflows.loaded import BEFORE, NOW
from tests.loaded.environment import HARMFUL, TENSORFLOW, Environment, change, find_library, grow, search
from tests.machines import write


@pytest.mark.parametrize("name", HARMFUL)
def test_another_file_is_a_difference_that_names_it_and_who_asked(name: str, environment: Environment) -> None:
    act, words = HARMFUL[name]
    found = environment.ask(**act(environment))
    assert len(found) == 1, found
    assert words in found[0]


def test_nothing_is_a_difference_twice(environment: Environment) -> None:
    assert (environment.ask(), environment.run("verify", "-v").stdout.splitlines()[-1]) == ([], BEFORE)
    assert environment.run("verify").stdout == "matches under policy strict\n"
    (environment.folder / "lib").mkdir()
    shutil.copy(find_library("libm.so"), environment.folder / "lib" / "libm.so.6")
    assert environment.ask(LD_LIBRARY_PATH=str(environment.folder / "lib")) == []


def test_a_hook_of_git_and_a_target_of_make_believe_the_last_observation(environment: Environment) -> None:
    for number in ("1", "2"):
        hook = {"GIT_AUTHOR_DATE": f"@{number} +0000", "MAKELEVEL": number, "SSH_CONNECTION": f"::1 {number} ::1 22"}
        assert environment.run("verify", "-v", **hook).stdout.splitlines()[-1] == BEFORE


def test_a_copy_of_the_systems_own_library_in_a_search_path_is_no_difference(environment: Environment) -> None:
    library = find_library("libffi.so")
    (environment.folder / "lib").mkdir()
    shutil.copy(library, environment.folder / "lib" / ".".join(library.name.split(".")[:3]))
    assert environment.ask(LD_LIBRARY_PATH=str(environment.folder / "lib")) == []


def test_a_library_among_packages_is_judged_by_its_content(environment: Environment) -> None:
    """A copy of the system's own, loaded in its place, is no difference; another one is one, and not two."""
    system = ctypes.util.find_library("stdc++")
    if system is None:
        pytest.skip("the system has no libstdc++")
    copy = environment.folder / "site-packages/tensorflow/libstdc++.so.6"
    line = f"ctypes.CDLL({str(copy)!r} if os.path.exists({str(copy)!r}) else {system!r})"
    write(environment.folder, {"site-packages/tensorflow/__init__.py": f"{TENSORFLOW}\n{line}\n"})
    environment.run("capture")
    shutil.copy(find_mapped(system), copy)
    assert environment.ask() == []
    change(copy)
    (found,) = environment.ask()
    assert found.startswith(f"x loaded.libstdcxx: not the locked file: {copy}: it lies among the installed packages")


def find_mapped(name: str) -> str:
    """Return the file that the loader takes."""
    code = f"import ctypes; ctypes.CDLL({name!r}); print(open('/proc/self/maps').read())"
    maps = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    return next(line.split()[-1] for line in maps.splitlines() if "libstdc++" in line)


def test_another_library_is_seen_though_its_time_and_size_are_as_before(environment: Environment) -> None:
    found = search(environment)
    path = environment.folder / "lib" / "libm.so.6"
    assert environment.run("capture", **found).returncode == 0
    assert environment.ask(**found) == []
    status = path.stat()
    path.write_bytes(path.read_bytes()[:-1] + b"\1")
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
    assert path.stat().st_size == status.st_size
    (line,) = environment.ask(**found)
    assert line.startswith(f"x loaded.libm: not the locked file: {path}")


def test_an_edited_module_of_python_itself_is_named(environment: Environment) -> None:
    lock = environment.folder / "envlock.lock"
    document = json.loads(lock.read_bytes())
    digest, *parts = document["facts"]["loaded"]["standard"]["random"].split()
    assert (len(digest), parts) == (16, [])
    document["facts"]["loaded"]["standard"]["random"] = "0" * 16
    lock.write_text(json.dumps(document), encoding="utf-8")
    library = Path(os.__file__).resolve().parent
    assert environment.ask() == [f"x loaded.standard.random: not the locked file: {library}/random.py"]


def test_without_a_look_nothing_is_said_to_match(environment: Environment) -> None:
    done = environment.run("verify", "--static", **search(environment))
    assert "loaded: not compared, by files only" in done.stdout
    assert "loaded." not in done.stdout
    static = environment.run("capture", "--static", "-o", "static.lock")
    assert static.returncode == 0
    assert "loaded" not in json.loads((environment.folder / "static.lock").read_bytes())["facts"]
    assert environment.run("verify", "static.lock").stdout.count(NOW) == 0


def test_an_environment_that_cannot_be_imported_is_locked_and_that_is_said(environment: Environment) -> None:
    init = environment.folder / "site-packages/tensorflow/__init__.py"
    init.write_text("raise OSError('libcudart')\n", encoding="utf-8")
    done = environment.run("capture", "-o", "broken.lock")
    assert done.stderr.splitlines()[1] == "warning: loaded: not compared: `import tensorflow` raised OSError"
    assert environment.run("verify", "broken.lock").returncode == 0


BREAKAGES = {
    "raise OSError('libcudart')\n": "`import tensorflow` raised OSError",
    "import os\nos.abort()\n": "the process that imports tensorflow was ended by SIGABRT",
}


@pytest.mark.parametrize("code", BREAKAGES)
def test_an_import_that_fails_by_now_is_no_match(code: str, environment: Environment) -> None:
    """What it loads cannot be seen, and that is not nothing: whatever broke the import hid the rest, too."""
    write(environment.folder, {"site-packages/tensorflow/__init__.py": code})
    done = environment.run("verify")
    assert done.returncode == 4
    line = f"  ? loaded.imports: locked [keras, numpy, tensorflow], live unknown ({BREAKAGES[code]})"
    assert line.replace("keras, ", "") in done.stdout.splitlines()
    assert "Import it in Python to see the whole error" in done.stdout
    assert environment.run("verify", "--static").returncode == 0


def test_the_section_names_no_place_of_this_machine(environment: Environment) -> None:
    text = json.dumps(json.loads((environment.folder / "envlock.lock").read_bytes())["facts"]["loaded"])
    assert "/" not in text
    assert len(text) < 15_000
    assert sys.prefix not in text


def test_a_library_of_a_package_that_grows_where_it_is_is_a_difference(environment: Environment) -> None:
    """It was explained by its name alone, while the folders of packages were as before."""
    grow(environment)
    library = environment.folder / "site-packages/tensorflow/l.so"
    record = environment.folder / "site-packages/tensorflow-2.21.0.dist-info/RECORD"
    record.write_text(record.read_text().replace("l.so,,7", f"l.so,,{library.stat().st_size}"), encoding="utf-8")
    assert environment.ask() == []
    change(library)
    (line,) = environment.ask()
    assert "l.so: its package lists it with another size" in line


def test_a_size_that_debian_lists_says_nothing(environment: Environment) -> None:
    """It strips libraries after their RECORD was written, and leaves no INSTALLER."""
    grow(environment)
    (environment.folder / "site-packages/tensorflow-2.21.0.dist-info/INSTALLER").unlink()
    assert environment.ask() == []


def test_a_command_is_not_started_beside_another_file(environment: Environment) -> None:
    """By files alone, `run` started it: only who calls `assert_locked()` looked after the import."""
    assert environment.run("run", "--", sys.executable, "-c", "print('started')").stdout == "started\n"
    act, words = HARMFUL["a plug-in"]
    done = environment.run("run", "--", sys.executable, "-c", "print('started')", **act(environment))
    assert (done.returncode, done.stdout) == (1, "")
    assert words in done.stderr
