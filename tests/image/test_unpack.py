"""Wheels installed without pip are as pip installs them."""

from __future__ import annotations

import base64
import csv
import hashlib
import os
import subprocess
import sys
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from envlock.guest.image import unpack

INFO = "demo-1.0.dist-info"
ENTRY_POINTS = """\
[console_scripts]
demo = demo.cli:main
Demo-Dotted = demo.cli:App.run [extra]
[gui_scripts]
window = demo:show
[demo.plugins]
one = demo:One
"""
COMMANDS = ("demo", "Demo-Dotted", "window")
FILES: Mapping[str, str] = {
    "demo/__init__.py": "VALUE = 'é'\n",
    "demo/data/tool.sh": "#!/bin/sh\n",
    "demo-1.0.data/scripts/run-demo": "#!python -E\nprint(1)\n",
    "demo-1.0.data/scripts/shell": "#!/bin/sh\n",
    "demo-1.0.data/data/share/demo/a.txt": "a\n",
    "demo-1.0.data/headers/demo.h": "int a;\n",
    "demo-1.0.data/purelib/pure.py": "",
    "demo-1.0.data/platlib/plat.py": "",
    f"{INFO}/METADATA": "Metadata-Version: 2.1\nName: demo\nVersion: 1.0\n",
    f"{INFO}/WHEEL": "Wheel-Version: 1.0\nGenerator: a test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    f"{INFO}/entry_points.txt": ENTRY_POINTS,
}


def packed(folder: Path, files: Mapping[str, str] = FILES) -> str:
    """Write a wheel, and return the line that requires it."""
    rows = [f"{name},{row_of(text)}\n" for name, text in files.items() if not name.endswith("/RECORD")]
    files = {**files, f"{INFO}/RECORD": "".join([*rows, f"{INFO}/RECORD,,\n"])}
    wheel = folder / "demo-1.0-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        for name, text in files.items():
            member = zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))
            member.external_attr = (0o100755 if name.endswith(".sh") else 0o100644) << 16
            archive.writestr(member, text)
    return f"demo==1.0 --hash=sha256:{hashlib.sha256(wheel.read_bytes()).hexdigest()}\n"


def row_of(text: str) -> str:
    """Return hash and size as a RECORD has them."""
    hashed = base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).rstrip(b"=").decode()
    return f"sha256={hashed},{len(text.encode())}"


def held(root: Path) -> dict[str, tuple[int, bytes]]:
    """Return what was installed, without what each installer says of itself, and of commands who runs what."""
    own = (f"{INFO}/INSTALLER", f"{INFO}/REQUESTED", f"{INFO}/RECORD")
    files = [path for path in root.rglob("*") if path.is_file() and not path.as_posix().endswith(own)]
    return {path.relative_to(root).as_posix(): (path.stat().st_mode & 0o777, content(path)) for path in files}


def content(path: Path) -> bytes:
    """Return the bytes of a file; of a generated command, which each pip writes in other words, the ends."""
    data = path.read_bytes()
    lines = data.splitlines()
    return lines[0] + lines[-1] if path.name in COMMANDS else data


def recorded(root: Path) -> set[tuple[str, ...]]:
    """Return the rows of the RECORD, of generated commands only the path."""
    (record,) = root.rglob("RECORD")
    rows = [tuple(row) for row in csv.reader(record.read_text(encoding="utf-8").splitlines())]
    kept = [row for row in rows if not row[0].endswith(("INSTALLER", "REQUESTED"))]
    return {row[:1] if row[0].rpartition("/")[2] in COMMANDS else row for row in kept}


@pytest.mark.slow
@pytest.mark.processes
def test_the_same_files_and_record_as_pip(tmp_path: Path) -> None:
    wheels = tmp_path / "wheels"
    wheels.mkdir()
    required = tmp_path / "requirements.txt"
    required.write_text(packed(wheels))
    ours, theirs = tmp_path / "ours", tmp_path / "theirs"
    subprocess.run([sys.executable, "-B", unpack.__file__, str(ours), required, wheels], check=True)
    pip = [sys.executable, "-B", "-m", "pip", "install", "-q", "--ignore-installed", "--no-index", "--no-deps"]
    pip += ["--find-links", str(wheels), "--no-compile", "--no-warn-script-location", "--disable-pip-version-check"]
    environ = {"PATH": os.environ["PATH"], "PIP_CONFIG_FILE": os.devnull, "PIP_ROOT_USER_ACTION": "ignore"}
    subprocess.run([*pip, "--root", str(theirs), "-r", required], check=True, env=environ)
    assert len(held(ours)) == 14
    assert held(ours) == held(theirs)
    assert recorded(ours) == recorded(theirs)


def broken() -> Iterator[tuple[str, dict[str, str], str]]:
    wheel = f"{INFO}/WHEEL"
    yield "old", {wheel: FILES[wheel].replace("py3-", "cp36-")}, "demo-1.0-py3-none-any.whl is not for Python 3."
    yield "path", {"../../x": ""}, "demo-1.0-py3-none-any.whl holds a file in a wrong place: '../../x'\n"
    yield "root", {"/x": ""}, "demo-1.0-py3-none-any.whl holds a file in a wrong place: '/x'\n"
    yield "part", {"demo-1.0.data/other/x": ""}, "holds a file in a wrong place: 'demo-1.0.data/other/x'\n"
    yield "entry", {f"{INFO}/entry_points.txt": "[gui_scripts]\n../x = a:b\n"}, "invalid entry point: ../x = a:b\n"
    yield "info", {"other-1.0.dist-info/WHEEL": ""}, "demo-1.0-py3-none-any.whl is not a wheel\n"


@pytest.mark.parametrize(("name", "files", "said"), list(broken()))
def test_a_wheel_that_does_not_fit(
    name: str, files: dict[str, str], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "requirements.txt").write_text(packed(tmp_path, {**FILES, **files}))
    outside = tmp_path / "root"
    assert unpack.main([str(outside), str(tmp_path / "requirements.txt"), str(tmp_path)]) == 1
    assert said in capsys.readouterr().err, name
    assert sorted(item.name for item in tmp_path.iterdir() if item != outside) == [
        "demo-1.0-py3-none-any.whl",
        "requirements.txt",
    ]


def test_a_wheel_with_another_hash(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    packed(tmp_path)
    (tmp_path / "requirements.txt").write_text(f"demo==1.0 --hash=sha256:{'ab' * 32}\n")
    assert unpack.main([str(tmp_path / "root"), str(tmp_path / "requirements.txt"), str(tmp_path)]) == 1
    assert capsys.readouterr().err == f"envlock: no wheel has the sha256 {'ab' * 32}\n"


@pytest.mark.parametrize(
    ("tag", "fits"),
    [
        ("py3-none-any", True),
        ("py2.py3-none-any", True),
        ("py30-none-any", True),
        ("cp32-abi3-manylinux_2_17_x86_64", True),
        ("cp32-cp32m-linux_x86_64", False),
        ("cp399-abi3-any", False),
        ("py2-none-any", False),
        ("pp3-none-any", False),
        (f"cp3{sys.version_info.minor}-cp3{sys.version_info.minor}-linux_x86_64", True),
        ("", False),
    ],
)
def test_tags(tag: str, fits: bool) -> None:
    assert unpack.is_for_this_python(tag) is fits
