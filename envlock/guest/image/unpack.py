"""Install wheels without pip, for a Python that has none, or not what pip needs: `unpack.py ROOT REQUIREMENTS FOLDER`

Installs each wheel of REQUIREMENTS, which FOLDER holds and which is found by its hash, for the Python that runs this,
as if ROOT were the root: files, commands and a RECORD, as pip writes them.
Source: https://packaging.python.org/en/latest/specifications/binary-distribution-format/.

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
from typing import Dict, Iterable, Iterator, List, Tuple

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
"""What pip 24 writes for an entry point."""

ENTRY = re.compile(r"([\w.]+)\s*:\s*(\w[\w.]*)\s*(?:\[.*\])?")


class UnsuitableError(Exception):
    """A wheel is not there, is not for this Python, or would be written to where no wheel belongs."""


def unsuitable(text: str, *values: object) -> UnsuitableError:
    """Return the error with this text."""
    return UnsuitableError(text.format(*values))


def main(argv: List[str]) -> int:
    """Install; return the exit code."""
    root, requirements, folder = argv
    os.umask(0o022)
    with open(requirements, encoding="ascii") as stream:
        wanted = re.findall(r"--hash=sha256:([0-9a-f]{64})", stream.read())
    held = {digest(path): path for path in glob.glob(os.path.join(folder, "*.whl"))}
    try:
        for sha256 in wanted:
            if sha256 not in held:
                raise unsuitable("no wheel has the sha256 {}", sha256)
            Wheel(held[sha256]).install(root)
    except (UnsuitableError, configparser.Error, zipfile.BadZipFile) as error:
        sys.stderr.write("envlock: {}\n".format(error))
        return 1
    return 0


def digest(path: str) -> str:
    """Return the SHA-256 of a file."""
    found = hashlib.sha256()
    with open(path, "rb") as stream:
        for piece in iter(lambda: stream.read(1 << 20), b""):
            found.update(piece)
    return found.hexdigest()


class Wheel:
    """A wheel, and what was written of it: the rows of its RECORD."""

    def __init__(self, path: str) -> None:
        self.file = os.path.basename(path)
        self.archive = zipfile.ZipFile(path)
        names = self.archive.namelist()
        infos = sorted(
            {name.split("/")[0] for name in names if re.match(r"[^/]+\.dist-info/WHEEL$", name)}
        )
        if len(infos) != 1:
            raise unsuitable("{} is not a wheel", self.file)
        self.info = infos[0]
        self.about = self.text("WHEEL").splitlines()
        self.places = self.parts()
        self.rows = []  # type: List[Tuple[str, str, str]]

    def text(self, name: str) -> str:
        """Return a file of its metadata; empty where there is none."""
        path = "{}/{}".format(self.info, name)
        return self.archive.read(path).decode("utf-8") if path in self.archive.namelist() else ""

    def install(self, root: str) -> None:
        """Install it below a folder that stands for the root.

        Raises:
            UnsuitableError: it is not for this Python, or holds a path that leads out of the folders for packages.
        """
        tags = [line.partition(":")[2].strip() for line in self.about if line.startswith("Tag:")]
        if not any(suits(tag) for tag in tags):
            raise unsuitable("{} is not for Python {}.{}", self.file, *sys.version_info[:2])
        site = self.places[""]
        for member in self.archive.infolist():
            if not member.filename.endswith("/") and member.filename != "{}/RECORD".format(
                self.info
            ):
                self.put(root, member)
        for path, text in scripts(self.text("entry_points.txt")):
            self.write(root, path, [text.encode("utf-8")], True)
        self.write(root, os.path.join(site, self.info, "INSTALLER"), [b"envlock\n"], False)
        record = os.path.join(site, self.info, "RECORD")
        self.rows.append((os.path.relpath(record, site), "", ""))
        with open(root + record, "w", encoding="utf-8", newline="") as stream:
            csv.writer(stream, lineterminator="\n").writerows(sorted(self.rows))

    def parts(self) -> Dict[str, str]:
        """Return where the parts of a wheel go: by the name of its part, and all else."""
        name = self.info.partition("-")[0]
        pure = any(
            re.match(r"Root-Is-Purelib:\s*true$", line, re.IGNORECASE) for line in self.about
        )
        found = {key: sysconfig.get_path(key) for key in ("purelib", "platlib", "scripts", "data")}
        version = "python{}.{}".format(*sys.version_info[:2])
        found["headers"] = os.path.join(sys.prefix, "include", "site", version, name)
        found[""] = found["purelib" if pure else "platlib"]
        return found

    def put(self, root: str, member: zipfile.ZipInfo) -> None:
        """Write a member to where it belongs."""
        parts = member.filename.split("/")
        key = ""
        if parts[0].endswith(".data") and len(parts) > 2:
            key, parts = parts[1], parts[2:]
        if key not in self.places or os.path.isabs(member.filename) or {"", ".", ".."} & set(parts):
            raise unsuitable("{} holds a file in a wrong place: {!r}", self.file, member.filename)
        path = os.path.join(self.places[key], *parts)
        with self.archive.open(member) as stream:
            pieces = iter(lambda: stream.read(1 << 20), b"")
            if key == "scripts":
                first = b"#!" + sys.executable.encode()
                pieces = iter([re.sub(rb"\A#!python[^\n]*", lambda _: first, b"".join(pieces))])
            self.write(root, path, pieces, bool(member.external_attr >> 16 & 0o111))

    def write(self, root: str, path: str, pieces: Iterable[bytes], is_program: bool) -> None:
        """Write a file and a row of the RECORD."""
        os.makedirs(os.path.dirname(root + path), exist_ok=True)
        found, size = hashlib.sha256(), 0
        with open(root + path, "wb") as stream:
            for piece in pieces:
                stream.write(piece)
                found.update(piece)
                size += len(piece)
        os.chmod(root + path, 0o755 if is_program else 0o644)
        hashed = base64.urlsafe_b64encode(found.digest()).rstrip(b"=").decode("ascii")
        self.rows.append((os.path.relpath(path, self.places[""]), "sha256=" + hashed, str(size)))


def suits(tag: str) -> bool:
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


def scripts(text: str) -> Iterator[Tuple[str, str]]:
    """Yield (path, text) of the commands that entry points make."""
    found = configparser.ConfigParser(delimiters=("=",), interpolation=None, strict=False)
    found.optionxform = str  # type: ignore[assignment,method-assign]
    found.read_string(text)
    for group in ("console_scripts", "gui_scripts"):
        for name, value in sorted(found.items(group)) if found.has_section(group) else ():
            match = ENTRY.match(value)
            if match is None or os.path.basename(name) != name:
                raise unsuitable("invalid entry point: {} = {}", name, value)
            fields = {
                "module": match.group(1),
                "name": match.group(2).split(".")[0],
                "call": match.group(2),
            }
            yield (
                os.path.join(sysconfig.get_path("scripts"), name),
                SCRIPT.format(python=sys.executable, **fields),
            )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
