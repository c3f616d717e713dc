"""What line 1 of a script does once what computes is imported: with a package in TensorFlow's place."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.loaded.environment import UNMEASURED, Environment, add_module, change, find_library, grow, plug_in
from tests.machines import write

HOOK = "any(type(each).__name__ == 'ImportHook' for each in sys.meta_path)"
LINE_1 = "import sys, envlock\nenvlock.assert_locked()\n"
IMPORT = f"{LINE_1}import tensorflow\nprint('went on', {HOOK})\n"
IS_DESCRIBED = "print('envlock.runtime.loaded.description' in sys.modules)"


def load(library: Path) -> str:
    return f"import ctypes\nctypes.CDLL({str(library)!r})\n"


def make_libm(made: Environment) -> Path:
    """Return another libm of the same name."""
    return change(Path(shutil.copy(find_library("libm.so"), made.folder / "libm.so.6")))


def refusal(made: Environment, code: str, **variables: str) -> str:
    """Return why a script was refused."""
    done = made.script(code, **variables)
    assert (done.returncode, done.stdout) == (1, ""), done.stderr
    assert "envlock.runtime.errors.EnvironmentMismatch" in done.stderr
    return next(line for line in done.stderr.splitlines() if line.startswith("  x loaded."))


def test_what_was_explained_before_is_not_described_again(environment: Environment) -> None:
    for answer in ("True", "False"):
        done = environment.script(f"{IMPORT}{IS_DESCRIBED}")
        assert (done.stdout, done.stderr) == (f"went on False\n{answer}\n", "")


def test_a_module_more_is_explained_once(environment: Environment) -> None:
    environment.script(IMPORT)
    for answer in ("True", "False"):
        done = environment.script(f"import sqlite3, colorsys\n{IMPORT}{IS_DESCRIBED}")
        assert (done.stdout, done.stderr) == (f"went on False\n{answer}\n", "")


def test_a_library_of_an_optional_module_may_be_absent(environment: Environment) -> None:
    lock = environment.folder / "envlock.lock"
    document = json.loads(lock.read_bytes())
    document["facts"]["loaded"]["data"] = [f"libsqlite3.so.0 9 sha256:{64 * 'a'}"]
    lock.write_text(json.dumps(document), encoding="utf-8")
    for answer in ("True", "False"):
        done = environment.script(f"{IMPORT}{IS_DESCRIBED}", **UNMEASURED)
        assert (done.stdout, done.stderr) == (f"went on False\n{answer}\n", "")


HARMFUL: dict[str, tuple[Callable[[Environment], object], str]] = {
    "a module that no package lists": (add_module, "extra.py: it lies among the installed packages"),
    "another size than in the RECORD": (grow, "l.so: its package lists it with another size"),
}


@pytest.mark.parametrize("name", HARMFUL)
def test_a_file_that_nothing_explains_is_refused_at_the_end_of_the_import(name: str, environment: Environment) -> None:
    environment.script(IMPORT)
    act, words = HARMFUL[name]
    act(environment)
    assert words in refusal(environment, IMPORT)


def test_a_program_of_numpy_alone_and_what_is_imported_after_tensorflow_are_looked_at(environment: Environment) -> None:
    package = environment.folder / "site-packages/numpy/__init__.py"
    write(environment.folder, {"site-packages/numpy/__init__.py": "try:\n    import extra\nexcept ImportError: pass\n"})
    environment.run("capture")
    assert environment.script(f"{LINE_1}import numpy\nprint('went on')").stdout == "went on\n", package
    add_module(environment)
    for code in ("", "import tensorflow\n"):
        assert "extra.py: it lies among" in refusal(environment, f"{LINE_1}{code}import numpy")


def test_a_rank_of_a_fleet_looks_again(environment: Environment) -> None:
    code = "import envlock\nenvlock.assert_fleet(rank=0, size=1)\nimport tensorflow\nprint('went on')"
    assert environment.script(code).stdout == "went on\n"
    add_module(environment)
    assert "extra.py: it lies among" in refusal(environment, code)


def test_a_library_that_computes_with_other_content_is_refused(environment: Environment) -> None:
    environment.script(IMPORT)
    library = make_libm(environment)
    expected = f"  x loaded.libm: not the locked file: {library}"
    assert refusal(environment, f"{load(library)}{IMPORT}") == expected
    assert refusal(environment, f"import tensorflow\n{load(library)}{IMPORT}") == expected


def test_another_blas_in_the_folder_of_libraries_of_a_conda_environment_is_refused(environment: Environment) -> None:
    """NumPy finds it by a name that all builds share: `conda install "libblas=*=*mkl"` replaces what that names."""
    library = environment.folder / "lib/libcblas.so.3"
    library.parent.mkdir()
    builds = {"openblas": Path(shutil.copy(find_library("libm.so"), library.parent / "libopenblasp-r0.3.21.so"))}
    builds["netlib"] = change(Path(shutil.copy(builds["openblas"], library.parent / "libcblas-netlib.so")))
    write(environment.folder, {"site-packages/numpy/__init__.py": load(library), "conda-meta/history": ""})
    library.symlink_to(builds["openblas"])
    environment.run("capture")
    assert environment.script(IMPORT).stdout == "went on False\n"
    library.unlink()
    library.symlink_to(builds["netlib"])
    assert "x loaded.blas: not the locked file" in refusal(environment, IMPORT)
    (found,) = environment.ask()
    assert found.startswith("x loaded.blas: not the locked file")
    # Netlib's has another name in itself, too.
    builds["netlib"].write_bytes(builds["netlib"].read_bytes().replace(b"libm.so.6\0", b"libn.so.6\0"))
    said = f"x loaded.blas: not the locked file: libm.so.6 is not loaded; {builds['netlib']} is"
    assert said in refusal(environment, IMPORT)
    (found,) = environment.ask()
    assert found.startswith(said)


def test_a_library_of_a_package_that_is_replaced_where_it_is_is_refused(environment: Environment) -> None:
    plug_in(environment)
    library = environment.folder / "site-packages/tensorflow-plugins/p.so"
    record = environment.folder / "site-packages/tensorflow-2.21.0.dist-info/RECORD"
    row = f"tensorflow-plugins/p.so,,{library.stat().st_size}\n"
    record.write_text(record.read_text() + row, encoding="utf-8")
    environment.run("capture")
    assert environment.script(IMPORT).stdout == "went on False\n"
    code = f"import sys, envlock\nenvlock.assert_locked()\nopen({str(library)!r}, 'ab').write(b'1')\nimport tensorflow"
    assert "p.so: its package lists it with another size" in refusal(environment, code)


def test_arithmetic_that_changes_after_line_1_is_refused(environment: Environment) -> None:
    """Each library can do that as it is loaded, and what it computes differs from then on."""
    upward = "import ctypes\nctypes.CDLL('libm.so.6').fesetround(0x800)\n"  # FE_UPWARD of x86_64
    locked, now = "rounds nearest, denormals kept", "rounds upward, denormals kept"
    for _ in range(2):  # with what a first process has noted, too
        assert refusal(environment, f"{LINE_1}\n{upward}import tensorflow") == (
            f"  x loaded.arithmetic: locked {locked}, live {now}"
        )
        assert environment.script(IMPORT).stdout == "went on False\n"


def test_arithmetic_is_compared_once_all_is_imported(environment: Environment) -> None:
    lock = environment.folder / "envlock.lock"
    document = json.loads(lock.read_bytes())
    document["facts"]["loaded"]["arithmetic"] = "rounds upward, denormals kept"
    lock.write_text(json.dumps(document), encoding="utf-8")
    assert "loaded.arithmetic: locked rounds upward" in refusal(environment, f"import numpy\n{IMPORT}")
    document["facts"]["loaded"]["imports"].append("later")
    lock.write_text(json.dumps(document), encoding="utf-8")
    assert environment.script(IMPORT).stdout == "went on True\n"


def test_an_edited_module_of_python_itself_is_refused(environment: Environment) -> None:
    lock = environment.folder / "envlock.lock"
    document = json.loads(lock.read_bytes())
    parts = document["facts"]["loaded"]["standard"]["json"].split()[1:]
    document["facts"]["loaded"]["standard"]["json"] = " ".join(["0" * 16, *parts])
    lock.write_text(json.dumps(document), encoding="utf-8")
    # Other parts ran here than at the capture: those of the lockfile are compared all the same.
    assert refusal(environment, f"import json.tool\n{IMPORT}").startswith("  x loaded.standard.json: not the locked")


def test_a_refusal_that_is_swallowed_is_repeated(environment: Environment) -> None:
    code = f"""{LINE_1}
{load(make_libm(environment))}
from importlib.util import find_spec
def swallow(ask):
    try:
        ask()
    except envlock.EnvironmentMismatch:
        print("refused")
for ask in (lambda: __import__("tensorflow"),) * 2 + (envlock.assert_locked, envlock.assert_loaded):
    swallow(ask)
print("tensorflow" in sys.modules, find_spec("tensorflow") is not None)
"""
    done = environment.script(code)
    assert (done.stdout, done.stderr) == ("refused\n" * 4 + "False True\n", "")


def test_a_lockfile_that_was_captured_again_is_another_question(environment: Environment) -> None:
    add_module(environment)
    code = f"""{LINE_1}
import os, shutil
try:
    import tensorflow
except envlock.EnvironmentMismatch:
    shutil.copy("new.lock", "envlock.lock")
envlock.assert_locked()
import tensorflow
print({HOOK})
"""
    assert environment.run("capture", "-o", "new.lock").returncode == 0
    assert environment.script(code).stdout == "False\n"


def test_the_mode_decides_as_on_line_1(environment: Environment) -> None:
    code = f"{load(make_libm(environment))}{IMPORT}"
    done = environment.script(code, ENVLOCK_MODE="warn")
    assert done.stdout == "went on False\n"
    assert done.stderr.count("loaded.libm: not the locked file") == 1
    late = f"{load(make_libm(environment))}{LINE_1}import os\nos.environ['ENVLOCK_MODE'] = 'off'\nimport tensorflow\n"
    assert environment.script(late).returncode == 0


@pytest.mark.parametrize("how", ["static=True", "'static.lock'"])
def test_where_only_files_are_asked_for_nothing_waits(how: str, environment: Environment) -> None:
    assert environment.run("capture", "--static", "-o", "static.lock").returncode == 0
    library = make_libm(environment)
    code = f"import sys, envlock\n{load(library)}envlock.assert_locked({how})\nprint({HOOK})\nimport tensorflow"
    assert environment.script(code).stdout == "False\n"
    module = "envlock.runtime.loaded.import_hook"
    code = f"import sys, envlock\nenvlock.assert_locked({how})\nprint({module!r} in sys.modules)"
    assert environment.script(code).stdout == "False\n"


def test_what_is_loaded_later_is_compared_when_the_program_asks(environment: Environment) -> None:
    library = make_libm(environment)
    code = f"{IMPORT}envlock.assert_loaded()\nprint('as locked', flush=True)\n{load(library)}"
    done = environment.script(f"{code}envlock.assert_loaded()")
    assert (done.returncode, done.stdout) == (1, "went on False\nas locked\n")
    assert f"loaded.libm: not the locked file: {library}" in done.stderr
    assert f"libm: not the locked file: {library}" in refusal(
        environment, f"import envlock\n{load(library)}envlock.assert_loaded()"
    )
    assert environment.script("import envlock\nenvlock.assert_loaded()").returncode == 0


def test_a_lockfile_without_what_is_loaded_answers_no_question_about_it(environment: Environment) -> None:
    assert environment.run("capture", "--static").returncode == 0
    done = environment.script("import envlock\nenvlock.assert_loaded()")
    assert done.stderr.splitlines()[-2:] == [
        f"envlock.runtime.errors.LockfileError: lockfile {environment.folder}/envlock.lock has no section `loaded`",
        "hint: capture again, without --static",
    ]
    assert environment.script("import envlock\nenvlock.assert_loaded()", ENVLOCK_MODE="off").returncode == 0


def test_a_forked_child_waits_as_its_parent(environment: Environment) -> None:
    code = f"""{LINE_1}
import os
if os.fork() == 0:
    {load(make_libm(environment)).strip().replace(chr(10), "; ")}
    try:
        import tensorflow
    except envlock.EnvironmentMismatch:
        os._exit(7)
_, status = os.wait()
import tensorflow
print(os.WEXITSTATUS(status))
"""
    assert environment.script(code).stdout == "7\n"


def test_without_a_cache_everything_is_described(environment: Environment) -> None:
    assert environment.script(IMPORT, XDG_CACHE_HOME="/proc/none").stdout == "went on False\n"
    library = make_libm(environment)
    assert "libm" in refusal(environment, f"{load(library)}{IMPORT}", XDG_CACHE_HOME="/proc/none")


def test_a_note_that_another_user_can_write_explains_nothing(environment: Environment) -> None:
    environment.script(IMPORT)
    (environment.folder / "cache/envlock/loaded").chmod(0o777)
    assert environment.script(f"{IMPORT}{IS_DESCRIBED}").stdout == "went on False\nTrue\n"
