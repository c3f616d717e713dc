"""Bytecode against its source: what Python would run, and only that."""

from __future__ import annotations

import marshal
import os
import py_compile
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from py_compile import PycInvalidationMode

import pytest
from hypothesis import given
from hypothesis import strategies as st

from envlock.packages import bytecode_comparison
from envlock.packages.bytecode_comparison import CHILD, compare
from envlock.runtime.files.compiled_file import CompiledFile, parse_compiled_name

pytestmark = pytest.mark.processes

PYTHON = Path(sys.executable)
SOURCE = '"""Text."""\n\n\ndef f(x):\n    return [x + 1, "one", 2.5]\n\n\nassert f(1)\n'
OTHER = SOURCE.replace("one", "two")


def make(folder: Path, mode: PycInvalidationMode = PycInvalidationMode.TIMESTAMP, optimize: int = 0) -> CompiledFile:
    source = folder / "mine.py"
    source.write_text(SOURCE)
    path = py_compile.compile(str(source), doraise=True, invalidation_mode=mode, optimize=optimize)
    return CompiledFile(str(path), str(source), str(sys.implementation.cache_tag), optimize)


def told(made: CompiledFile) -> str:
    return compare(PYTHON, [made]).get(made.path, "fine")


def rewrite(made: CompiledFile, text: str) -> None:
    """Give the source another content, of the same size and time."""
    status = Path(made.source).stat()
    Path(made.source).write_text(text)
    os.utime(made.source, ns=(status.st_atime_ns, status.st_mtime_ns))


@pytest.mark.parametrize("mode", PycInvalidationMode)
@pytest.mark.parametrize("optimize", [0, 1, 2])
def test_what_python_makes_is_fine_and_an_unchecked_hash_is_named(
    mode: PycInvalidationMode, optimize: int, tmp_path: Path
) -> None:
    made = make(tmp_path, mode, optimize)
    assert parse_compiled_name(made.path) == made
    assert told(made) == ("unchecked" if mode is PycInvalidationMode.UNCHECKED_HASH else "fine")


@pytest.mark.parametrize(
    ("mode", "word"),
    [
        (PycInvalidationMode.TIMESTAMP, "other-code"),
        (PycInvalidationMode.CHECKED_HASH, "fine"),  # Python sees that it is stale, and compiles anew
        (PycInvalidationMode.UNCHECKED_HASH, "other-code"),
    ],
)
def test_bytecode_of_another_source(mode: PycInvalidationMode, word: str, tmp_path: Path) -> None:
    made = make(tmp_path, mode)
    rewrite(made, OTHER)
    assert told(made) == word


def test_python_itself_runs_what_is_named(tmp_path: Path) -> None:
    made = make(tmp_path)
    rewrite(made, OTHER)
    code = "import sys; sys.path.insert(0, sys.argv[1]); import mine; print(mine.f(1)[1])"
    done = subprocess.run([str(PYTHON), "-c", code, str(tmp_path)], capture_output=True, text=True, check=True)
    assert (done.stdout, told(made)) == ("one\n", "other-code")


def test_stale_bytecode_and_that_of_another_python_are_fine(tmp_path: Path) -> None:
    made = make(tmp_path)
    os.utime(made.source, (1, 1))
    assert told(made) == "fine"
    made = make(tmp_path)
    content = bytearray(Path(made.path).read_bytes())
    content[0] ^= 1
    Path(made.path).write_bytes(bytes(content[:200]))
    assert told(made) == "fine"


def endless() -> bytes:
    return b"(" + (2**31 - 1).to_bytes(4, "little")


def deep() -> bytes:
    return b"\xa9\x01" * 100_000


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda body: body[:-1], {"other-code"}),
        (lambda body: body + b"N", {"other-code"}),
        (lambda body: b"", {"other-code"}),
        (lambda body: marshal.dumps("no code"), {"other-code"}),
        (lambda body: body.replace(b"one", b"two"), {"other-code"}),
        (lambda body: endless(), {"other-code", "too-large", "crashed"}),
        (lambda body: deep(), {"other-code", "crashed"}),
    ],
)
def test_a_damaged_body(change: Callable[[bytes], bytes], words: set[str], tmp_path: Path) -> None:
    made = make(tmp_path)
    content = Path(made.path).read_bytes()
    Path(made.path).write_bytes(content[:16] + change(content[16:]))
    assert told(made) in words


@pytest.mark.slow
@given(st.integers(0, 10**6), st.integers(1, 255))
def test_a_changed_byte_is_named_or_changes_nothing_that_runs(
    tmp_path_factory: pytest.TempPathFactory, number: int, byte: int
) -> None:
    made = make(tmp_path_factory.mktemp("pyc"))
    content = bytearray(Path(made.path).read_bytes())
    content[number % len(content)] ^= byte
    Path(made.path).write_bytes(bytes(content))
    if number % len(content) >= 16 and told(made) == "fine":  # in the header: Python compiles anew
        assert marshal.loads(bytes(content[16:])) == compile(SOURCE, made.source, "exec", dont_inherit=True)


def test_one_that_ends_the_interpreter_does_not_hide_the_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = []
    for name in "abcdef":
        (tmp_path / name).mkdir()
        made.append(make(tmp_path / name))
    rewrite(made[4], OTHER)
    child = tmp_path / "child.py"
    fatal = f"if pyc == {made[2].path!r}: os.abort()\n        word ="
    child.write_text(CHILD.read_text().replace("word =", fatal, 1))
    monkeypatch.setattr(bytecode_comparison, "CHILD", child)
    assert compare(PYTHON, made) == {made[2].path: "crashed", made[4].path: "other-code"}


def test_one_that_never_answers_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = make(tmp_path)
    child = tmp_path / "child.py"
    child.write_text("import time; print('ready', flush=True); time.sleep(600)\n")
    monkeypatch.setattr(bytecode_comparison, "CHILD", child)
    monkeypatch.setattr(bytecode_comparison, "SILENCE", 0.5)
    begin = time.monotonic()
    assert told(made) == "crashed"
    assert time.monotonic() - begin < 300


def test_an_interrupt_does_not_wait_for_a_child(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One child says how far it is, which is interrupted; the other would take ten minutes."""
    made = []
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        made.append(make(tmp_path / name))
    child = tmp_path / "child.py"
    silent = f"time.sleep(0 if {made[0].path!r} in sys.stdin.read() else 600)"
    child.write_text(f"import sys, time; print('ready', flush=True); {silent}; print('fine', flush=True)\n")
    monkeypatch.setattr(bytecode_comparison, "CHILD", child)

    def interrupt(_: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        compare(PYTHON, made, interrupt)


@pytest.mark.parametrize("python", ["/nonexistent/python", "/bin/true", "/bin/cat"])
def test_an_interpreter_that_is_none(python: str, tmp_path: Path) -> None:
    made = make(tmp_path)
    assert compare(Path(python), [made]) == {made.path: "no-answer"}


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("mine.cpython-311.pyc", ("mine.py", 0)),
        ("mine.cpython-311.opt-2.pyc", ("mine.py", 2)),
        ("mine.cpython-311.opt-mine.pyc", ("mine.py", 0)),
        ("mine.cpython-313t.pyc", ("mine.py", 0)),
        ("mine.pypy310.pyc", ("mine.py", 0)),
        ("mine.cpython-311-pytest-9.0.1.pyc", ("mine.py", 0)),
        ("a.b.cpython-311.pyc", ("a.b.py", 0)),
        ("a\nb.cpython-311.pyc", ("a\nb.py", 0)),
        ("mine.pyc", None),
        ("mine.cpython-311.pyc.1234", None),
    ],
)
def test_what_a_name_says(name: str, expected: tuple[str, int] | None) -> None:
    found = parse_compiled_name(f"/s/p/__pycache__/{name}")
    assert (None if found is None else (found.source, found.optimization)) == (
        None if expected is None else (f"/s/p/{expected[0]}", expected[1])
    )


def test_bytecode_of_pytests_own_assertions_is_no_false_alarm(tmp_path: Path) -> None:
    """Its tag is not Python's, so Python never takes it."""
    made = make(tmp_path)
    other = made.path.replace(".pyc", "-pytest-9.0.pyc")
    shutil.copy(made.path, other)
    rewrite(made, OTHER)
    found = parse_compiled_name(other)
    assert found is not None
    assert (found.source, compare(PYTHON, [found])) == (made.source, {})
