"""Files that nobody would write: all end in findings or clear errors, in bounded time, and never in a traceback."""

from __future__ import annotations

import ast
import os
import warnings
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from envlock.linter.files import SIZE_LIMIT, Unreadable, find, parse
from envlock.linter.linter import Settings, check, lint
from envlock.runtime.errors import UsageError
from tests.exhaustive import exhaustive
from tests.linter.test_examples import EXAMPLES

LATEST = Settings("2.21.0")
MESSAGES = {
    "nul.py": (b"x = 1\0\n", "NUL|null"),
    "latin.py": (b"# \xe9\nx = 1\n", "it is not text in the encoding it declares"),
    "unknown.py": (b"# coding: klingon\n", "it is not text in the encoding it declares"),
    "cut.py": (b"def f(:\n", "it is not valid Python for this interpreter: invalid syntax"),
    "deep.py": (b"x = " + b"(" * 9000 + b")" * 9000, "nested"),
    "minus.py": (b"x = " + b"-" * 200_000 + b"1", "it is nested too deeply for Python's own parser"),
    "attributes.py": (b"x = a" + b".b" * 100_000, "it is nested too deeply for Python's own parser"),
    "large.py": (b"#" * (SIZE_LIMIT + 1), "it is larger than 2 MB"),
}


def is_parsed(data: bytes) -> bool:
    try:
        ast.parse(data)
    except (RecursionError, MemoryError):
        return False
    return True


def test_what_cannot_be_read_is_a_finding(tmp_path: Path) -> None:
    for name, (data, message) in MESSAGES.items():
        (tmp_path / name).write_bytes(data)
        findings = lint([str(tmp_path / name)], LATEST)
        if message.endswith("Python's own parser") and is_parsed(data):  # as by that of Python 3.14
            assert findings == []
            continue
        (finding,) = findings
        assert (finding.rule, finding.severity, finding.where.file) == ("ENV001", "error", str(tmp_path / name))
        assert any(part in finding.message for part in message.split("|")), (name, finding.message)


@pytest.mark.parametrize(
    "code",
    [
        "x = " + "+".join(["1"] * 2000),
        "if a:\n" + "".join(f"{' ' * depth}if a:\n" for depth in range(1, 90)) + " " * 90 + "pass",
        "f" + "(1)" * 500,
        "x = " + "[" * 90 + "]" * 90,
        "import os, numpy\na" + ".b" * 900 + " = os.listdir(x)\nshow(a" + ".b" * 900 + ")",
        "import tensorflow as tf\n" + "x = x.map(f, num_parallel_calls=2)\n" * 300,
        "import tensorflow as tf\n" + "\n".join(f"def f{i}(x):\n  return f{i + 1}(x)" for i in range(300)),
        "\n".join(f"x = {name}.next" for name in "xyz" * 20)
        + "\ny = x.left\nz = y.right\ny = z.up\nx = z.down\ntf = x\ntf.y()",
        "import tensorflow as tf\ndef f(x):\n  return f(x)\nds.map(f, num_parallel_calls=3)\nf = f",
        "\ufeffimport tensorflow as tf\n",
        "import tensorflow as tf\r\rtf.random.set_seed = 1\r",
        "",
    ],
)
def test_what_is_large_or_turns_in_circles_is_looked_at(code: str) -> None:
    list(check([parse("x.py", code)], LATEST))


def _bare(call: ast.Call) -> None:
    call.args, call.keywords = [], []


def _named(call: ast.Call) -> None:
    call.args = []


def _starred(call: ast.Call) -> None:
    call.args = [ast.Starred(ast.Name("a", ast.Load()), ast.Load())]
    call.keywords = [ast.keyword(None, ast.Name("k", ast.Load()))]


def _backwards(call: ast.Call) -> None:
    call.args.reverse()


@pytest.mark.longer
@pytest.mark.parametrize("change", [_bare, _named, _starred, _backwards])
def test_calls_without_the_arguments_that_a_rule_expects_are_looked_at(change: Callable[[ast.Call], None]) -> None:
    for file in sorted(set(EXAMPLES.rglob("*.py")) - set((EXAMPLES / "ENV001").iterdir())):
        if "python2" in file.stem:
            continue
        tree = ast.parse(file.read_bytes())
        for call in (node for node in ast.walk(tree) if isinstance(node, ast.Call)):
            change(call)
        list(check([parse(str(file), ast.unparse(tree))], LATEST))


def test_fifos_links_in_circles_and_locked_files_are_passed_over_or_told(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo.py")
    (tmp_path / "loop").symlink_to(tmp_path)
    (tmp_path / "gone.py").symlink_to(tmp_path / "nowhere")
    (tmp_path / "round.py").symlink_to(tmp_path / "round.py")
    (tmp_path / "a.py").write_text("x = 1\n")
    (tmp_path / "again.py").symlink_to(tmp_path / "a.py")
    (tmp_path / "folder.py").mkdir()
    assert find([str(tmp_path)]) == [str(tmp_path / "a.py")]
    with pytest.raises(UsageError, match=r"fifo.py: it is neither a file nor a folder\n"):
        find([str(tmp_path / "fifo.py")])
    with pytest.raises(UsageError, match=r"^cannot read .*/none.py: No such file or directory\n"):
        find([str(tmp_path / "none.py")])
    with pytest.raises(UsageError, match=r"not a path\n"):
        find(["a\0b"])


def test_a_file_that_vanishes_is_a_finding(tmp_path: Path) -> None:
    (finding,) = lint([str(tmp_path / "gone.py")], LATEST)
    assert finding.message == "it cannot be read: No such file or directory"


def test_what_holds_no_code_of_the_project_is_left_out(tmp_path: Path) -> None:
    kept = ["a.py", "src/b.py", "tests/c.py"]
    left_out = [".hidden/x.py", "__pycache__/x.py", "build/x.py", "env/lib/x.py", "src/gen_pb2.py", "old/x.py", "n.txt"]
    for name in (*kept, *left_out, "env/pyvenv.cfg"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("")
    found = find([str(tmp_path)], ["*_pb2.py", str(tmp_path / "old") + "/"])
    assert found == [str(tmp_path / name) for name in kept]
    assert find([str(tmp_path / "build/x.py")]) == [str(tmp_path / "build/x.py")]  # named, so meant


WORDS = st.sampled_from(
    [
        *(
            "import tensorflow as tf",
            "import keras",
            "import numpy as np",
            "import random, os",
            "from os import environ",
        ),
        *(
            "ds = ds.map(f, num_parallel_calls=4)",
            "ds.shuffle(3)",
            "def f(x): return f(x)",
            "x = set(y)",
            "hash(x) % 3",
        ),
        *("class A(tf.Module):\n  x = lambda self: self.x", "os.environ['TF_DETERMINISTIC_OPS'] = 'yes'", "global x"),
        *("for a, *b in x: list(set(a))", "np.random.rand(*a, **b)", "tf.map_fn(lambda x: tf.random.normal([]), x)"),
        *("try: pass\nexcept* ValueError as e: pass", "match x:\n  case [a, *b]: pass", "async def g(): await x"),
        *("x: int = y", "x += tf.add_n(x)", "del x", "@tf.function(jit_compile=True)\ndef h(): tf.random.normal([])"),
        *("a, b = b, a", "(c := d)", "nonlocal_ = 1", "os.environ |= {**x, 'a': 1}", "# envlock: ignore[ENV203] x"),
    ]
)


@settings(max_examples=60)
@given(st.lists(WORDS | st.text(max_size=12), max_size=12))
def test_nothing_that_python_parses_breaks_the_linter(lines: list[str]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            module = parse("x.py", "\n".join(lines))
        except Unreadable:
            return
        for version in ("1.15.5", "2.6.5", "2.21.0"):
            found = check([module], Settings(version))
            assert all(finding.where.line >= 1 and finding.where.column >= 1 for finding in found)


STANDARD = sorted(Path(os.__file__).parent.glob("*.py"))


@pytest.mark.longer
@pytest.mark.parametrize("part", [0, *(pytest.param(part, marks=[pytest.mark.slow, exhaustive]) for part in (1, 2, 3))])
def test_the_standard_library_gives_no_traceback_and_hardly_a_finding(part: int) -> None:
    """It is code of every kind, and none of it trains: only its own random numbers may be told."""
    found = lint([str(file) for file in STANDARD[part::4]], LATEST)
    assert {finding.rule for finding in found if not finding.where.part} <= {"ENV206", "ENV207"}
    assert len(STANDARD) > 100
