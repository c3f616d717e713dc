"""Deep verification on small environments: nothing where nothing was touched, and every kind of fault by its name."""

from __future__ import annotations

import hashlib
import os
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from envlock.data import runtime_tables
from envlock.guest import bytecode as child
from envlock.lock.models import PackageIdentity
from envlock.packages import bytecode_comparison
from envlock.packages import file_verification as files
from envlock.packages.file_verification import survey
from envlock.packages.installation import Installation
from envlock.runtime import tables
from envlock.runtime.files.compiled_file import CompiledFile
from envlock.runtime.files.record_rows import get_common_content, hash_content, parse_rows
from envlock.runtime.report import ABSENT, Finding
from tests.golden_files import assert_as_golden
from tests.machines import write as write_all
from tests.packages.installed import CUBLAS, NUMPY, Prefix, row, usual

PYTHON = Path(sys.executable)
INIT = "numpy/__init__.py"
GOLDEN = Path(__file__).parents[1] / "golden" / "file-findings.txt"


def verify(place: Installation, locked: dict[str, PackageIdentity] | None = None) -> list[Finding]:
    return files.verify_files(survey(place), PYTHON, locked or {})


def told(prefix: Prefix) -> list[tuple[str, str, str, str]]:
    """Return (kind, severity, path, what) of every finding, sorted."""
    found = verify(prefix.place)
    return sorted((each.rule[5:], each.severity, each.where.fact, each.actual["what"]) for each in found)


def hexed(data: bytes) -> str:
    return "sha256:" + hashlib.sha256(data).hexdigest()


@pytest.fixture(scope="module")
def pristine(tmp_path_factory: pytest.TempPathFactory) -> Prefix:
    return usual(tmp_path_factory.mktemp("pristine") / "venv")


def copied(pristine: Prefix, root: Path) -> Prefix:
    """Return an environment of its own, with the times that the bytecode holds."""
    shutil.copytree(pristine.root, root, symlinks=True)
    return Prefix(root)


@pytest.fixture
def prefix(pristine: Prefix, tmp_path: Path) -> Prefix:
    return copied(pristine, tmp_path / "venv")


@pytest.fixture(autouse=True)
def _compared_here(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Bytecode is judged by the program of the child, but without a child (test_bytecode.py has those)."""
    if request.node.get_closest_marker("processes") is None:
        monkeypatch.setattr(bytecode_comparison, "_ask", judged_here)


def judged_here(python: Path, asked: list[CompiledFile], *_: object) -> tuple[bool, list[str]]:
    """Return the child's words."""
    assert {each.tag for each in asked} <= {sys.implementation.cache_tag}
    return True, [child._judge(each.path, each.source, each.optimization) for each in asked]


@pytest.mark.processes
def test_nothing_is_said_of_an_untouched_environment(prefix: Prefix) -> None:
    assert (prefix.site / "numpy/__pycache__").is_dir()
    assert told(prefix) == []


def test_bytecode_of_another_source_is_named(prefix: Prefix) -> None:
    pyc = next((prefix.site / "numpy/__pycache__").iterdir())
    pyc.write_bytes(pyc.read_bytes().replace(b"VERSION", b"VESSION"))
    what = "differs from the source beside it"
    assert told(prefix) == [("bytecode", "error", f"numpy/__pycache__/{pyc.name}", what)]


def test_bytecode_that_python_keeps_elsewhere_is_compared(
    prefix: Prefix, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pyc = next((prefix.site / "numpy/__pycache__").iterdir())
    elsewhere = Path(f"{tmp_path}/cache{prefix.site.resolve()}/numpy/{pyc.name}")
    elsewhere.parent.mkdir(parents=True)
    elsewhere.write_bytes(pyc.read_bytes())
    monkeypatch.setattr(sys, "pycache_prefix", f"{tmp_path}/cache")
    assert told(prefix) == []
    elsewhere.write_bytes(pyc.read_bytes().replace(b"VERSION", b"VESSION"))
    assert told(prefix) == [("bytecode", "error", str(elsewhere), "differs from the source beside it")]


def test_a_modified_file_as_a_whole_finding(prefix: Prefix) -> None:
    before = (prefix.site / INIT).read_bytes()
    (prefix.site / INIT).write_bytes(b"x")
    (kind,) = [row for row in runtime_tables.load_file_table().kind if row.name == "modified"]
    (found,) = verify(prefix.place)
    assert found.to_json() == {
        "where": {"fact": INIT},
        "message": f"{INIT}: truncated: 1 of {len(before)} bytes",
        "rule": "file-modified",
        "expected": {"packages": ["numpy 1.26.4"], "hash": hexed(before), "size": len(before)},
        "actual": {"what": f"truncated: 1 of {len(before)} bytes", "size": 1, "mode": "0644", "hash": hexed(b"x")},
        "severity": "error",
        "why": kind.why,
        "fix": kind.fix,
        "source": kind.source,
    }
    assert found.weight == kind.weight + 10


def write(path: Path, text: str = "x = 1\n") -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o644)


def remove(folder: Path, *names: str) -> None:
    for name in names:
        (folder / name).unlink()


def fifo(path: Path) -> None:
    path.unlink(missing_ok=True)
    os.mkfifo(path)


def folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


def folders(site: Path, *names: str) -> None:
    for name in names:
        (site / name).mkdir(parents=True)


def linked(path: Path) -> None:
    path.mkdir()
    link(path / "y", "../numpy")


def link(path: Path, target: str) -> None:
    path.unlink(missing_ok=True)
    path.symlink_to(target)


Act = Callable[[Path], Any]
NOBODY = "that belongs to no package"

CASES: dict[str, Act] = {
    "another byte": lambda site: (site / INIT).write_text(str(NUMPY[INIT]).replace("1", "2")),
    "longer": lambda site: (site / INIT).write_text(str(NUMPY[INIT]) + "\n"),
    "gone": lambda site: (site / INIT).unlink(),
    "a script outside site-packages": lambda site: (site / "../../../bin/f2py").write_text("#!/bin/sh\n"),
    "a FIFO": lambda site: fifo(site / INIT),
    "a folder": lambda site: folder(site / "six.py"),
    "a device": lambda site: link(site / INIT, "/dev/zero"),
    "a link to itself": lambda site: link(site / INIT, "__init__.py"),
    "a link to nothing": lambda site: link(site / INIT, "nothing"),
    "an endless file": lambda site: os.truncate(site / INIT, 1 << 40),
    "a foreign file": lambda site: write(site / "numpy/mine.py"),
    "a foreign module": lambda site: write(site / "mine.py"),
    "a foreign library": lambda site: write(site / "mine.cpython-311-x86_64-linux-gnu.so"),
    "a foreign folder is named once": lambda site: write_all(site, {f"mine/{number}/x.py": "" for number in range(30)}),
    "empty folders that no `import` can name": lambda site: folders(
        site, "tf_cpu.libs/a/b", "numpy/a-b", "~umpy", "x.pth"
    ),
    "an empty folder that `import` can name": lambda site: folders(site, "numpy/mine/deeper"),
    "a folder with nothing but a link to a folder": lambda site: linked(site / "x.libs"),
    "a foreign link": lambda site: link(site / "numpy/loop", "."),
    "a name for the terminal": lambda site: write(site / "a\nb\x1b[2J.py"),
    "a name that is no UTF-8": lambda site: write(site / os.fsdecode(b"\xff.py")),
    "a foreign file among the bytecode": lambda site: write(site / "numpy/__pycache__/mine.py"),
    "what Numba keeps": lambda site: write(site / "numpy/__pycache__/mine.f-1.py311.nbi"),
    "left by pip": lambda site: write(site / "~umpy/x.py"),
    "a .pth that runs code": lambda site: write(site / "a.pth", "# x\n\nimport os; os.abort()\n/opt\n"),
    "a .pth that is a FIFO": lambda site: fifo(site / "a.pth"),
    "virtualenv's": lambda site: write_all(site, {"_virtualenv.pth": "import _virtualenv", "_virtualenv.py": ""}),
    "virtualenv's, with more in it": lambda site: write(site / "_virtualenv.pth", "import _virtualenv\nimport evil\n"),
    "a development install": lambda site: write(
        site / "__editable__.mine-1.0.pth",
        "import __editable___mine_1_0_finder; __editable___mine_1_0_finder.install()",
    ),
    "sitecustomize": lambda site: write(site / "sitecustomize.py"),
    "bytecode without a source": lambda site: write(site / "mine.pyc"),
    "bytecode beside its source": lambda site: write(site / "six.pyc"),
    "bytecode left behind": lambda site: write(site / "numpy/__pycache__/gone.cpython-311.pyc"),
    "no bytecode": lambda site: shutil.rmtree(site / "numpy/__pycache__"),
    "unreadable": lambda site: (site / CUBLAS).chmod(0),
    "a folder for everyone": lambda site: (site / "numpy").chmod(0o777),
    "no RECORD, of pip": lambda site: (site / "numpy-1.26.4.dist-info/RECORD").unlink(),
    "no RECORD, of the system": lambda site: remove(site / "six-1.17.0.dist-info", "RECORD", "INSTALLER"),
}


@pytest.mark.longer
def test_each_kind_of_fault(pristine: Prefix, tmp_path: Path) -> None:
    lines = []
    for case, act in CASES.items():
        prefix = copied(pristine, tmp_path / case)
        act(prefix.site)
        lines += [f"# {case}", *(ascii(" | ".join(found))[1:-1] for found in told(prefix)), ""]
    text = "\n".join(lines)
    if os.geteuid():
        text = text.replace("cannot be read by this user", "0000: its owner cannot read it")
    assert_as_golden(text, GOLDEN)


def test_a_cuda_library_that_two_wheels_fight_for(prefix: Prefix) -> None:
    ours = (prefix.site / CUBLAS).read_bytes()
    theirs = b"\x7fELF" + b"c" * 6000
    prefix.install("nvidia_cublas", "13.1.0", {"nvidia/__init__.py": "", CUBLAS: theirs})
    (found,) = verify(prefix.place)
    assert found.rule == "file-doubly-owned"
    assert found.where.fact == CUBLAS
    assert found.weight == 95
    assert found.expected == {
        "packages": ["nvidia-cublas 13.1.0", "nvidia-cublas-cu12 12.9.3"],
        "rows": [
            {"package": "nvidia-cublas 13.1.0", "hash": hexed(theirs), "size": len(theirs)},
            {"package": "nvidia-cublas-cu12 12.9.3", "hash": hexed(ours), "size": len(ours)},
        ],
    }
    assert found.actual == {
        "what": "nvidia-cublas 13.1.0 has overwritten the file of nvidia-cublas-cu12 12.9.3",
        "size": len(theirs),
        "mode": "0644",
        "hash": hexed(theirs),
        "packages": ["nvidia-cublas 13.1.0"],
    }
    (prefix.site / CUBLAS).write_bytes(b"neither")
    what = "claimed by nvidia-cublas 13.1.0 and nvidia-cublas-cu12 12.9.3, but the file belongs to neither"
    assert told(prefix) == [("doubly-owned", "error", CUBLAS, what)]


def test_two_packages_with_one_file_of_one_content_are_no_finding(prefix: Prefix) -> None:
    prefix.install("nvidia_cudnn_cu12", "9.3", {"nvidia/__init__.py": ""})
    assert told(prefix) == []


def test_two_versions_beside_each_other(prefix: Prefix) -> None:
    prefix.install("numpy", "2.0.0", {**NUMPY, INIT: "VERSION = '2'\n"})
    prefix.compile()
    what = "numpy-1.26.4.dist-info and numpy-2.0.0.dist-info are installed side by side"
    assert told(prefix) == [("duplicate-package", "error", "numpy-1.26.4.dist-info", what)]


def test_the_record_is_not_the_locked_one(prefix: Prefix) -> None:
    text = (prefix.site / "six-1.17.0.dist-info/RECORD").read_text()
    fields: dict[str, Any] = {
        "version": "1.17.0",
        "origin": "index",
        "proof": None,
        "wheel": None,
        "reason": "Not asked.",
    }
    own = hash_content(get_common_content(parse_rows(text)))
    locked = {"six": PackageIdentity(content=own, **fields), "gone": PackageIdentity(content="0" * 64, **fields)}
    assert verify(prefix.place, locked) == []
    locked["six"] = PackageIdentity(content="0" * 64, **fields)
    (found,) = verify(prefix.place, locked)
    assert (found.rule, found.where.fact, found.severity) == ("file-not-locked", "six-1.17.0.dist-info", "error")
    assert found.expected == {"packages": ["six 1.17.0"], "content": "0" * 64}
    assert found.actual == {"what": "its RECORD differs from the locked one", "content": own}


def test_a_folder_that_cannot_be_read_is_not_empty(prefix: Prefix, monkeypatch: pytest.MonkeyPatch) -> None:
    (prefix.site / "x.libs/closed").mkdir(parents=True)
    scan = os.scandir

    def refuse(folder: str) -> Any:
        if str(folder).endswith("closed"):
            raise PermissionError(13, "Permission denied", folder)
        return scan(folder)

    monkeypatch.setattr(os, "scandir", refuse)
    assert told(prefix) == [("foreign", "error", "x.libs", f"a folder of 1 file {NOBODY}")]


def test_a_foreign_file_has_no_expected_side(prefix: Prefix) -> None:
    write(prefix.site / "mine.py")
    (found,) = verify(prefix.place)
    assert found.expected is ABSENT


# --- a RECORD is hostile input

LONG = "a/" * 2500 + "f"


DAMAGED = "its RECORD is damaged: one line is not valid by the packaging specification"
ROWS = {
    "/etc/passwd,,\n": ("outside-environment", "error", "/etc/passwd", "listed by bad 1"),
    "../../../../../../x,,\n": ("outside-environment", "error", "../../../../../../x", "listed by bad 1"),
    "../../../../venv2/x,,\n": ("outside-environment", "error", "../../../../venv2/x", "listed by bad 1"),
    '"a\nb",sha256=x,1\n': ("missing", "error", "a\nb", "is missing"),
    "\udcff,sha256=x,1\n": ("missing", "error", "\udcff", "is missing"),
    f"{LONG},sha256=x,1\n": ("modified", "error", LONG, "cannot be opened: File name too long"),
    f"{'n' * 300},sha256=x,1\n": ("modified", "error", "n" * 300, "cannot be opened: File name too long"),
    "numpy/\0,sha256=x,1\n": ("damaged-record", "error", "bad-1.dist-info", DAMAGED),
    "a,b\n": ("damaged-record", "error", "bad-1.dist-info", DAMAGED),
    "a,sha256=x,many\n": ("damaged-record", "error", "bad-1.dist-info", DAMAGED),
    f"a,sha256=x,{'9' * 5000}\n": ("damaged-record", "error", "bad-1.dist-info", DAMAGED),
    f"six.py/x,sha256=x,{10**300}\n": ("missing", "error", "six.py/x", "is missing"),
    f"bad.py,sha256={'A' * 43},4\n": ("damaged-record", "error", "bad.py", "is listed twice, with two hashes"),
    "numpy,,\n": ("modified", "error", "numpy", "is a folder, not a file"),
}


def test_a_hostile_row_is_a_finding(prefix: Prefix) -> None:
    found = {}
    for also in ROWS:
        prefix.install("bad", "1", {"bad.py": "bad\n"}, also=also)
        found[also] = told(prefix)
    assert found == {also: [expected] for also, expected in ROWS.items()}


def test_a_row_with_a_wrong_size(prefix: Prefix) -> None:
    record = prefix.site / "six-1.17.0.dist-info/RECORD"
    record.write_text(record.read_text().replace(row("six.py", b"PY3 = True\n"), row("six.py", b"PY3 = True\n") + "0"))
    what = "has the recorded hash, but its RECORD says 110 bytes instead of 11"
    assert told(prefix) == [("misrecorded", "warning", "six.py", what)]


@pytest.mark.parametrize(
    ("garbage", "times", "what"),
    [
        (bytes({*range(256)} - {10}), 10_000, None),
        (b"\xff", 17_000_000, "its RECORD is larger than 16 MB"),
        (b"a,,\n", 300_000, "its RECORD has more than 200,000 lines"),
        (b'"', 1, DAMAGED),
        (b"a,b\nc,,\n", 90_000, DAMAGED.replace("one line is", "90000 lines are")),
    ],
    ids=["noise", "large", "many lines", "a quote", "each second line"],
)
def test_a_record_of_garbage(garbage: bytes, times: int, what: str | None, prefix: Prefix) -> None:
    (prefix.site / "six-1.17.0.dist-info/RECORD").write_bytes(garbage * times)
    found = [each for each in told(prefix) if each[0] == "damaged-record"]
    assert [each[:3] for each in found] == [("damaged-record", "error", "six-1.17.0.dist-info")]
    assert what is None or found[0][3] == what


def test_a_record_that_is_a_fifo_holds_nobody_up(prefix: Prefix) -> None:
    fifo(prefix.site / "six-1.17.0.dist-info/RECORD")
    assert told(prefix) == [("damaged-record", "error", "six-1.17.0.dist-info", "its RECORD is empty")]


def test_a_file_that_vanishes_while_it_is_read(prefix: Prefix, monkeypatch: pytest.MonkeyPatch) -> None:
    real = os.open

    def vanish(path: Any, *args: Any, **more: Any) -> int:
        if str(path).endswith("six.py"):
            Path(path).unlink()
        return real(path, *args, **more)

    monkeypatch.setattr(os, "open", vanish)
    assert told(prefix) == [("missing", "error", "six.py", "is missing")]


def test_a_file_that_shrinks_while_it_is_read(prefix: Prefix, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "readv", lambda fd, buffers: 0)
    assert ("modified", "error", "six.py", "changed during reading") in told(prefix)


def test_a_folder_that_is_linked_to_another_disk_is_the_same_folder(prefix: Prefix, tmp_path: Path) -> None:
    shutil.move(prefix.site / "nvidia", tmp_path / "elsewhere")
    (prefix.site / "nvidia").symlink_to(tmp_path / "elsewhere")
    assert told(prefix) == []
    (tmp_path / "elsewhere" / "cublas/lib/libcublas.so.12").write_bytes(b"x")
    write(tmp_path / "elsewhere" / "mine.py")
    assert [each[0] for each in told(prefix)] == ["foreign", "modified"]


def test_files_of_a_folder_of_the_systems_packages_are_not_foreign(
    prefix: Prefix, monkeypatch: pytest.MonkeyPatch
) -> None:
    row = {"folder": str(prefix.site), "by": "dpkg"}
    monkeypatch.setitem(tables._read, "files", {**tables.table("files"), "managed": [row]})
    write(prefix.site / "mine.py")
    write(prefix.site / "a.pth", "/opt\n")
    (prefix.site / "six.py").write_text("PY3 = None\n")
    what = "belongs to no package, and adds `/opt` to the import path (the folder belongs to dpkg)"
    assert told(prefix) == [
        ("modified", "info", "six.py", "different content of the same size (it belongs to dpkg)"),
        ("startup", "info", "a.pth", what),
    ]


def test_a_hash_in_digits_is_read_too(prefix: Prefix) -> None:
    record = prefix.site / "six-1.17.0.dist-info/RECORD"
    digits = hashlib.sha256(b"PY3 = True\n").hexdigest()
    record.write_text(record.read_text().replace(row("six.py", b"PY3 = True\n"), f"six.py,sha256={digits},11"))
    assert told(prefix) == []
    (prefix.site / "six.py").write_text("PY3 = None\n")
    (found,) = verify(prefix.place)
    assert (found.rule, found.expected["hash"]) == ("file-modified", f"sha256:{digits}")


def test_no_two_kinds_share_a_name_and_every_kind_can_be_found() -> None:
    names = [kind.name for kind in runtime_tables.load_file_table().kind]
    assert len(names) == len(set(names))


# --- what must always hold

CORRUPTIONS = ("flip", "truncate", "delete", "extend", "swap", "chmod", "add")
VICTIMS = (INIT, "numpy/core/_multi.so", CUBLAS, "six.py", "six-1.17.0.dist-info/METADATA", "../../../bin/f2py")
WRONG_MODES = (0o000, 0o200, 0o040, 0o444, 0o600, 0o640, 0o646, 0o666, 0o777, 0o744, 0o654, 0o4644, 0o2755, 0o1644)


@given(st.sampled_from(CORRUPTIONS), st.sampled_from(VICTIMS), st.integers(0, 10**6), st.integers(1, 255))
def test_any_single_corruption_is_named_and_nothing_else(
    tmp_path_factory: pytest.TempPathFactory, pristine: Prefix, kind: str, victim: str, number: int, byte: int
) -> None:
    prefix = copied(pristine, tmp_path_factory.mktemp("corrupt") / "venv")
    named = corrupt(prefix.site, kind, victim, number, byte)
    found = verify(prefix.place)
    assert sorted(each.where.fact for each in found) == sorted(named)
    assert all(each.severity == "error" for each in found)


def corrupt(site: Path, kind: str, victim: str, number: int, byte: int) -> list[str]:
    """Do one thing to an environment; return the paths that must be named."""
    path = Path(os.path.normpath(site / victim))
    content = bytearray(path.read_bytes())
    if kind == "add":
        write(path.parent / f"added-{number}.py") if ".." not in victim else write(site / "added.py")
        return [f"{Path(victim).parent}/added-{number}.py".removeprefix("./")] if ".." not in victim else ["added.py"]
    if kind == "swap":
        other = site / "nvidia_cublas_cu12-12.9.3.dist-info/METADATA"
        here, there = path.read_bytes(), other.read_bytes()
        path.write_bytes(there)
        other.write_bytes(here)
        return [victim, "nvidia_cublas_cu12-12.9.3.dist-info/METADATA"]
    if kind == "delete":
        path.unlink()
    elif kind == "chmod":
        path.chmod(WRONG_MODES[number % len(WRONG_MODES)])
    else:
        content[number % len(content)] ^= byte
        data = {"flip": content, "truncate": content[: number % len(content)], "extend": content + bytes([byte])}[kind]
        path.write_bytes(data)
    return [victim]
