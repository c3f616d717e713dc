"""Environments made of files, as an installer leaves them: a RECORD with hashes, modes, scripts, bytecode."""

from __future__ import annotations

import compileall
import hashlib
import os
import sys
from base64 import urlsafe_b64encode
from collections.abc import Mapping
from pathlib import Path

from envlock.packages.installation import Installation

NUMPY: dict[str, str | bytes] = {
    "numpy/__init__.py": "import os\n\nVERSION = '1'\n",
    "numpy/core/_multi.so": b"\x7fELF" + b"numpy" * 40,
}
CUBLAS = "nvidia/cublas/lib/libcublas.so.12"


class Prefix:
    """A virtual environment's folder; `site` is its `site-packages`."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.site = root / "lib" / "python{}.{}".format(*sys.version_info) / "site-packages"
        self.python = root / "bin" / "python"
        self.site.mkdir(parents=True, exist_ok=True)
        (root / "bin").mkdir(exist_ok=True)

    @property
    def place(self) -> Installation:
        """What `environment()` would say of it."""
        return Installation(self.root, (self.site,))

    def install(
        self,
        name: str,
        version: str,
        files: Mapping[str, str | bytes],
        *,
        scripts: Mapping[str, str] | None = None,
        also: str = "",
    ) -> Path:
        """Install a distribution; return its RECORD. `also` is appended to it as it stands."""
        info = f"{name}-{version}.dist-info"
        metadata = {f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"}
        every = {**files, **metadata, f"{info}/INSTALLER": "pip\n", f"{info}/WHEEL": "Wheel-Version: 1.0\n"}
        rows = [self._put(path, content, 0o644) for path, content in every.items()]
        rows += [self._put(f"../../../bin/{path}", content, 0o755) for path, content in (scripts or {}).items()]
        record = self.site / info / "RECORD"
        text = "".join(f"{row}\n" for row in [*rows, f"{info}/RECORD,,"]) + also
        record.write_bytes(os.fsencode(text))
        record.chmod(0o644)
        return record

    def compile(self) -> None:
        """Compile every source, as pip does, and let each RECORD list the bytecode."""
        compileall.compile_dir(str(self.site), quiet=1, workers=1)

    def _put(self, path: str, content: str | bytes, mode: int) -> str:
        data = content if isinstance(content, bytes) else content.encode()
        file = Path(os.path.normpath(self.site / path))
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(data)
        file.chmod(mode)
        return row(path, data)


def row(path: str, data: bytes) -> str:
    """Return the line of a RECORD for a file."""
    digest = urlsafe_b64encode(hashlib.sha256(data).digest()).decode().rstrip("=")
    quoted = f'"{path}"' if "," in path or "\n" in path else path
    return f"{quoted},sha256={digest},{len(data)}"


def usual(root: Path) -> Prefix:
    """Return an environment of three packages, with a script and bytecode."""
    prefix = Prefix(root)
    prefix.install("numpy", "1.26.4", NUMPY, scripts={"f2py": "#!/usr/bin/python\nprint()\n"})
    prefix.install("nvidia_cublas_cu12", "12.9.3", {"nvidia/__init__.py": "", CUBLAS: b"\x7fELF" + b"b" * 5000})
    prefix.install("six", "1.17.0", {"six.py": "PY3 = True\n"})
    prefix.compile()
    return prefix
