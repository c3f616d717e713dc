"""Install wheels without pip, for a Python without pip or without the modules that pip needs.

    unpack.py ROOT REQUIREMENTS FOLDER

Installs each wheel in REQUIREMENTS, which is found in FOLDER by its hash, for the Python that runs
this program, as if ROOT were the root: files, commands and a RECORD, as pip writes them. Source:
https://packaging.python.org/en/latest/specifications/binary-distribution-format/.

Runs in a stage of the build, on Python 3.6 or newer; standard library only.
"""

import base64
import configparser
import csv
import glob
import hashlib
import os
import re
import sys
import sysconfig
import zipfile
from importlib import import_module
from typing import Dict, Iterable, Iterator, List, Tuple, Type  # noqa: F401 (in comments)

SCRIPT = """\
#!{python}
# -*- coding: utf-8 -*-
import re
import sys
from {module} import {name}
if __name__ == '__main__':
    sys.argv[0] = re.sub(r'(-script\\.pyw|\\.exe)?$', '', sys.argv[0])
    sys.exit({call}())
"""
"""The script that pip 24 writes for an entry point."""

ENTRY = re.compile(r"([\w.]+)\s*:\s*(\w[\w.]*)\s*(?:\[.*\])?")


def list_refused():  # type: () -> Tuple[Type[Exception], ...]
    """Return what is raised for a wheel that is unsuitable, or damaged; this Python may lack a
    decompressor.
    """
    damage = [UnsuitableError, configparser.Error]  # type: List[Type[Exception]]
    damage += [zipfile.BadZipFile, EOFError, NotImplementedError, OSError, RuntimeError, ValueError]
    for module, name in (("struct", "error"), ("zlib", "error"), ("lzma", "LZMAError")):
        try:
            damage.append(getattr(import_module(module), name))
        except ImportError:
            pass
    return tuple(damage)


class UnsuitableError(Exception):
    """A wheel is missing, is not for this Python, or would be written outside of the folders for
    wheels.
    """


def make_error(text: str, *values: object) -> UnsuitableError:
    """Return the error with this text."""
    return UnsuitableError(text.format(*values))


def main(argv: List[str]) -> int:
    """Install the wheels; return the exit code."""
    root, requirements, folder = argv
    os.umask(0o022)
    with open(requirements, encoding="ascii") as stream:
        wanted = re.findall(r"--hash=sha256:([0-9a-f]{64})", stream.read())
    wheels = {compute_digest(path): path for path in glob.glob(os.path.join(folder, "*.whl"))}
    try:
        for sha256 in wanted:
            if sha256 not in wheels:
                raise make_error("no wheel has the sha256 {}", sha256)
            Wheel(wheels[sha256]).install(root)
    except list_refused() as error:
        sys.stderr.write("envlock: {}\n".format(error))
        return 1
    return 0


def compute_digest(path: str) -> str:
    """Return the SHA-256 of a file."""
    sha256 = hashlib.sha256()
    with open(path, "rb") as stream:
        for piece in iter(lambda: stream.read(1 << 20), b""):
            sha256.update(piece)
    return sha256.hexdigest()


class Wheel:
    """A wheel, and the rows of the RECORD for the files that were written."""

    def __init__(self, path: str) -> None:
        self.file = os.path.basename(path)
        self.archive = zipfile.ZipFile(path)
        infos = set()
        for name in self.archive.namelist():
            if re.match(r"[^/]+\.dist-info/WHEEL$", name):
                infos.add(name.split("/")[0])
        if len(infos) != 1:
            raise make_error("{} is not a wheel", self.file)
        self.info = infos.pop()
        self.about = self.read_text("WHEEL").splitlines()
        self.places = self.find_places()
        self.rows = []  # type: List[Tuple[str, str, str]]

    def read_text(self, name: str) -> str:
        """Return the text of a metadata file; empty if it does not exist."""
        path = "{}/{}".format(self.info, name)
        if path not in self.archive.namelist():
            return ""
        return self.archive.read(path).decode("utf-8")

    def install(self, root: str) -> None:
        """Install it below a folder that stands for the root.

        Raises:
            UnsuitableError: it is not for this Python, or contains a path that leads out of the
                folders for packages.
        """
        tags = [line.partition(":")[2].strip() for line in self.about if line.startswith("Tag:")]
        if not any(is_for_this_python(tag) for tag in tags):
            raise make_error("{} is not for Python {}.{}", self.file, *sys.version_info[:2])
        site = self.places[""]
        own_record = "{}/RECORD".format(self.info)
        for member in self.archive.infolist():
            # A new RECORD is written, because its paths are those of this Python.
            if not member.filename.endswith("/") and member.filename != own_record:
                self.put(root, member)
        for path, text in make_scripts(self.read_text("entry_points.txt")):
            self.write(root, path, [text.encode("utf-8")], True)
        self.write(root, os.path.join(site, self.info, "INSTALLER"), [b"envlock\n"], False)
        record = os.path.join(site, self.info, "RECORD")
        self.rows.append((os.path.relpath(record, site), "", ""))
        with open(root + record, "w", encoding="utf-8", newline="") as stream:
            csv.writer(stream, lineterminator="\n").writerows(sorted(self.rows))

    def find_places(self) -> Dict[str, str]:
        """Return the folders for the parts of a wheel by key; the key for everything else is empty."""
        name = self.info.partition("-")[0]
        places = {key: sysconfig.get_path(key) for key in ("purelib", "platlib", "scripts", "data")}
        version = "python{}.{}".format(*sys.version_info[:2])
        places["headers"] = os.path.join(sys.prefix, "include", "site", version, name)
        places[""] = places["platlib"]
        for line in self.about:
            if re.match(r"Root-Is-Purelib:\s*true$", line, re.IGNORECASE):
                places[""] = places["purelib"]
        return places

    def put(self, root: str, member: zipfile.ZipInfo) -> None:
        """Write a member to its place."""
        parts = member.filename.split("/")
        key = ""
        if parts[0].endswith(".data") and len(parts) > 2:
            key, parts = parts[1], parts[2:]
        if key not in self.places or os.path.isabs(member.filename) or {"", ".", ".."} & set(parts):
            raise make_error("{} holds a file in a wrong place: {!r}", self.file, member.filename)
        path = os.path.join(self.places[key], *parts)
        with self.archive.open(member) as stream:
            pieces = iter(lambda: stream.read(1 << 20), b"")
            if key == "scripts":
                # The first line of a script names `python`, which is replaced by this interpreter.
                first = b"#!" + sys.executable.encode()
                pieces = iter([re.sub(rb"\A#!python[^\n]*", lambda _: first, b"".join(pieces))])
            # The upper half has the mode that the file had when it was packed.
            self.write(root, path, pieces, bool(member.external_attr >> 16 & 0o111))

    def write(self, root: str, path: str, pieces: Iterable[bytes], is_program: bool) -> None:
        """Write a file, and add its row of the RECORD."""
        os.makedirs(os.path.dirname(root + path), exist_ok=True)
        sha256, size = hashlib.sha256(), 0
        with open(root + path, "wb") as stream:
            for piece in pieces:
                stream.write(piece)
                sha256.update(piece)
                size += len(piece)
        mode = 0o755 if is_program else 0o644
        os.chmod(root + path, mode)
        hashed = base64.urlsafe_b64encode(sha256.digest()).rstrip(b"=").decode("ascii")
        self.rows.append((os.path.relpath(path, self.places[""]), "sha256=" + hashed, str(size)))


def is_for_this_python(tag: str) -> bool:
    """Return whether wheels of a tag, such as `cp39-abi3-linux_x86_64`, are for this Python."""
    own = tuple(sys.version_info[:2])
    for python in tag.partition("-")[0].split("."):
        match = re.match(r"(py|cp)(\d)(\d*)$", python)
        if match is None or int(match.group(2)) != own[0]:
            continue
        version = (own[0], int(match.group(3) or 0))
        is_stable = match.group(1) == "py" or "-abi3-" in tag
        if version == own or (version < own and is_stable):
            return True
    return False


def make_scripts(text: str) -> Iterator[Tuple[str, str]]:
    """Yield (path, text) of the commands for entry points."""
    parser = configparser.ConfigParser(delimiters=("=",), interpolation=None, strict=False)
    # Names keep their case: by default they would become lower case.
    parser.optionxform = str  # type: ignore[assignment,method-assign]
    parser.read_string(text)
    for group in ("console_scripts", "gui_scripts"):
        if not parser.has_section(group):
            continue
        for name, value in sorted(parser.items(group)):
            match = ENTRY.match(value)
            # A name with a slash would lead out of the folder.
            if match is None or os.path.basename(name) != name:
                raise make_error("invalid entry point: {} = {}", name, value)
            script = SCRIPT.format(
                python=sys.executable,
                module=match.group(1),
                name=match.group(2).split(".")[0],
                call=match.group(2),
            )
            yield os.path.join(sysconfig.get_path("scripts"), name), script


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
