"""Make wheels: small, sound, and the same bytes every time."""

from __future__ import annotations

import base64
import hashlib
import subprocess
import sys
import zipfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path


def record_line(name: str, data: bytes) -> str:
    """Return the line of a RECORD for a file."""
    digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
    return f"{name},sha256={digest},{len(data)}\n"


def make_wheel(
    folder: Path,
    name: str = "thing",
    version: str = "1.0",
    files: Mapping[str, bytes] | None = None,
    tag: str = "py3-none-any",
    headers: Sequence[str] = (),
) -> Path:
    """Write `NAME-VERSION-TAG.whl` with a module (or `files`) and right metadata; return its path.

    `headers` are further lines of its METADATA.
    """
    info = f"{name}-{version}.dist-info"
    content = {
        **(files or {f"{name}.py": f"VERSION = {version!r}\n".encode()}),
        f"{info}/METADATA": "\n".join(
            ["Metadata-Version: 2.1", f"Name: {name}", f"Version: {version}", *headers, ""]
        ).encode(),
        f"{info}/WHEEL": f"Wheel-Version: 1.0\nGenerator: tests\nRoot-Is-Purelib: true\nTag: {tag}\n".encode(),
    }
    record = "".join(record_line(each, data) for each, data in content.items()) + f"{info}/RECORD,,\n"
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}-{version}-{tag}.whl"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for each, data in {**content, f"{info}/RECORD": record.encode()}.items():
            archive.writestr(zipfile.ZipInfo(each, (1980, 1, 1, 0, 0, 0)), data, zipfile.ZIP_DEFLATED)
    return path


def record_in(wheel: Path) -> bytes:
    """Return the RECORD of a wheel by Python's own means."""
    with zipfile.ZipFile(wheel) as archive:
        return archive.read(next(name for name in archive.namelist() if name.endswith(".dist-info/RECORD")))


def make_environment(folder: Path, wheels: Iterable[Path]) -> Path:
    """Make a virtual environment in which wheels are installed; return its interpreter."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True)
    site = next(folder.glob("lib/python3.*/site-packages"))
    for wheel in wheels:
        with zipfile.ZipFile(wheel) as archive:
            archive.extractall(site)
        next(site.glob(f"{wheel.name.split('-')[0]}*.dist-info")).joinpath("INSTALLER").write_text("pip\n")
    return folder / "bin" / "python"
