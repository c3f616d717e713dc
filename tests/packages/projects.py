"""Projects that are built without an index: their build backend is a file of their own, and needs nothing."""

from __future__ import annotations

import tarfile
from pathlib import Path

BACKEND = """
import base64, hashlib, os, time, zipfile
NAME = {name!r}
def _write(folder, files):
    info = NAME + "-1.0.dist-info/"
    files[info + "METADATA"] = "Metadata-Version: 2.1\\nName: " + NAME + "\\nVersion: 1.0\\n"
    files[info + "WHEEL"] = "Wheel-Version: 1.0\\nGenerator: x\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n"
    rows = [(path, base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).rstrip(b"=").decode(), len(text))
            for path, text in files.items()]
    files[info + "RECORD"] = "".join("%s,sha256=%s,%s\\n" % row for row in rows) + info + "RECORD,,\\n"
    file = NAME + "-1.0-py3-none-any.whl"
    when = time.gmtime(int(os.environ.get("SOURCE_DATE_EPOCH", time.time())))[:6]
    with zipfile.ZipFile(os.path.join(folder, file), "w") as wheel:
        for path, text in files.items():
            wheel.writestr(zipfile.ZipInfo(path, when), text)
    return file
def build_wheel(folder, settings=None, metadata=None):
    open("left-behind", "w").close()
    return _write(folder, {{name: open(name).read() for name in os.listdir() if name == NAME + ".py"}})
def build_editable(folder, settings=None, metadata=None):
    return _write(folder, {{NAME + ".pth": os.getcwd() + "\\n"}})
"""
PROJECT = """
[build-system]
requires = []
build-backend = "backend"
backend-path = ["."]

[project]
name = "{name}"
version = "1.0"
"""


def make_project(folder: Path, name: str) -> Path:
    """Write a project with one module and return its folder."""
    folder.mkdir(parents=True)
    (folder / "backend.py").write_text(BACKEND.format(name=name))
    (folder / "pyproject.toml").write_text(PROJECT.format(name=name))
    (folder / f"{name}.py").write_text("VALUE = 1\n")
    return folder


def make_archive(folder: Path, name: str) -> Path:
    """Write the source archive of a project into a folder and return its path."""
    project = make_project(folder.parent / "unpacked" / name, name)
    (project / "PKG-INFO").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}-1.0.tar.gz"
    with tarfile.open(path, "w:gz") as archive:
        archive.add(project, f"{name}-1.0")
    return path
