"""What Python and the processor do in a process is measured, whatever caused it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path

import pytest

import envlock

pytestmark = pytest.mark.processes


def run_python(*words: str, environ: dict[str, str]) -> str:
    """Return what this Python prints, started with these options and variables."""
    own = {"PATH": os.defpath, "PYTHONPATH": str(Path(envlock.__file__).parents[1]), **environ}
    return subprocess.run([sys.executable, *words], env=own, capture_output=True, text=True, check=True).stdout


COLLECT = (
    "from envlock.runtime.collectors import python; from envlock.runtime.host import Host; f = python.collect(Host())"
)


def collect_python(*options: str, show: str, **environ: str) -> str:
    return run_python(*options, "-c", f"{COLLECT}; print(f['{show}'])", environ=environ).strip()


def test_the_hash_of_a_text_is_the_effect_of_the_seed() -> None:
    fixed = collect_python(show="hash", PYTHONHASHSEED="0")
    assert int(fixed)
    assert collect_python(show="hash", PYTHONHASHSEED="00") == fixed
    assert collect_python(show="hash", PYTHONHASHSEED="1") != fixed
    assert collect_python("-R", show="hash", PYTHONHASHSEED="0") != fixed
    assert collect_python(show="hash") == collect_python("-E", show="hash", PYTHONHASHSEED="0") == "None"


def test_optimisation_is_seen_however_it_was_asked_for() -> None:
    assert [collect_python(show="optimize"), collect_python("-O", show="optimize")] == ["0", "1"]
    assert collect_python(show="optimize", PYTHONOPTIMIZE="2") == "2"


@pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler")
@pytest.mark.parametrize(
    ("body", "fact", "value"),
    [
        ("return fesetround(FE_UPWARD);", "rounding", "upward"),
        ("return fesetround(FE_DOWNWARD);", "rounding", "downward"),
        ("return fesetround(FE_TOWARDZERO);", "rounding", "toward-zero"),
        ("return fesetround(FE_TONEAREST);", "rounding", "nearest"),
        ("_mm_setcsr(_mm_getcsr() | 0x8040); return 0;", "denormals", "flushed"),
    ],
)
@pytest.mark.skipif(os.uname().machine != "x86_64", reason="sets a register of x86-64")
def test_how_the_processor_rounds_is_measured(body: str, fact: str, value: str, tmp_path: Path) -> None:
    source, library = tmp_path / "s.c", tmp_path / "s.so"
    source.write_text(f"#include <fenv.h>\n#include <xmmintrin.h>\nint start(void) {{ {body} }}\n", encoding="utf-8")
    subprocess.run(["cc", "-shared", "-fPIC", "-o", library, source, "-lm"], check=True)
    code = f"{COLLECT}; import ctypes; ctypes.CDLL('{library}').start(); print(python.collect(Host())['{fact}'])"
    assert run_python("-c", code, environ={}).strip() == value


def test_a_variable_that_only_c_code_sees_is_unknown() -> None:
    code = (
        "import ctypes, os; os.putenv('OMP_NUM_THREADS', '1'); os.environ['TF_USE_CUBLASLT'] = '1'; "
        "from envlock.runtime.collectors import environment_variables as e; from envlock.runtime.host import Host; "
        "f = e.collect(Host()); print(f['OMP_NUM_THREADS'].code, f['TF_USE_CUBLASLT'], f['TF_DETERMINISTIC_OPS'])"
    )
    assert run_python("-c", code, environ={}).split() == ["changed-in-c", "1", "None"]


def test_where_text_and_hours_are_read_is_told_and_refused_by_no_policy() -> None:
    assert collect_python(show="time_zone", TZ="Asia/Kolkata") == "UTC+5:30"
    assert collect_python(show="time_zone", TZ="XYZ3") == "UTC-3:00"
    assert collect_python("-X", "utf8=0", show="text_encoding", LC_ALL="C", PYTHONCOERCECLOCALE="0") == "ansi_x3.4-1968"
    assert collect_python("-X", "utf8=1", show="text_encoding", LC_ALL="C") == "utf-8"


@pytest.mark.parametrize("ending", [".py", "/__init__.py", ".pyc", *EXTENSION_SUFFIXES])
@pytest.mark.parametrize("entry", ["folder", "archive.zip", "archive.zip/lib"])
def test_a_module_that_hides_one_of_the_standard_library_is_held(entry: str, ending: str, tmp_path: Path) -> None:
    folder, inside = tmp_path / "folder", tmp_path / "folder" / entry.partition("/")[2]
    (inside / f"random{ending}").parent.mkdir(parents=True)
    (inside / f"random{ending}").touch()
    (inside / "mine.py").touch()
    shutil.make_archive(str(tmp_path / "archive"), "zip", folder)
    code = f"import sys; sys.path.insert(1, '{tmp_path / entry}'); {COLLECT}; print(sorted(f['shadows']))"
    is_imported = entry == "folder" or not ending.endswith(".so")  # none from an archive
    assert run_python("-c", code, environ={}).strip() == ("['random']" if is_imported else "[]")


def test_nothing_hides_the_standard_library_otherwise() -> None:
    assert run_python("-c", f"{COLLECT}; print(sorted(f['shadows']))", environ={}).strip() == "[]"
