"""Locks captured inside the bed's stand-ins, and wheels to capture them with."""

from __future__ import annotations

import base64
import hashlib
import io
import json
import re
import shutil
import tarfile
import zipfile
from pathlib import Path
from typing import Any

from envlock.runtime.files.record_rows import get_common_content, hash_content, parse_rows
from tests.image.bed.images import Image, Layer
from tests.image.bed.session import ROOT, Bed
from tests.locks import document

INSTALL = """
set -e
cp -r /el/envlock /tmp/envlock
python3 -B -m venv {options} --without-pip /tmp/venv
PYTHONPATH=$(echo /usr/share/python-wheels/pip-*.whl) /tmp/venv/bin/python -B -m pip install -q \
    --no-index --find-links /wheels --no-deps --no-compile {names} >&2
cd /
/tmp/venv/bin/python -B -c '
import json, sys
sys.path.append("/tmp")
from envlock.runtime.collectors import take_snapshot
found = take_snapshot()
print(json.dumps([found.facts, found.unavailable]))
'
"""
"""What a user does by hand in a container of the base before capturing: a virtual environment and a few packages."""


def demo_wheel(folder: Path, name: str, version: str, **more: bytes) -> Path:
    """Write a wheel with one module and one command, and more files in the module's folder."""
    info = f"{name}-{version}.dist-info"
    texts = {
        f"{name}/__init__.py": f"__version__ = {version!r}\n\n\ndef main():\n    print(__version__)\n",
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"
        "Classifier: License :: OSI Approved :: MIT License\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: a test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        f"{info}/entry_points.txt": f"[console_scripts]\n{name} = {name}:main\n",
    }
    files = {path: text.encode() for path, text in texts.items()}
    files |= {f"{name}/{file}": data for file, data in more.items()}
    rows = []
    for path, data in files.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
        rows.append(f"{path},sha256={digest},{len(data)}\n")
    files[f"{info}/RECORD"] = "".join([*rows, f"{info}/RECORD,,\n"]).encode()
    folder.mkdir(parents=True, exist_ok=True)
    wheel = folder / f"{name}-{version}-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        for path, data in files.items():
            archive.writestr(zipfile.ZipInfo(path, (1980, 1, 1, 0, 0, 0)), data)
    return wheel


def identity(wheelhouse: Path) -> dict[str, Any]:
    """Return what `envlock capture --hashes` would say of everything in a wheelhouse."""
    packages = {}
    for wheel in sorted(wheelhouse.glob("*.whl")):
        name, version = wheel.name.split("-")[:2]
        data = wheel.read_bytes()
        packages[name.lower().replace("_", "-")] = {
            "version": version,
            "content": hash_content(get_common_content(parse_rows(_record(wheel)))),
            "origin": "index",
            "proof": "file",
            "wheel": {
                "name": wheel.name,
                "sha256": hashlib.sha256(data).hexdigest(),
                "size": len(data),
                "url": None,
                "index": None,
            },
            "reason": None,
        }
    return {"packages": packages}


def _record(wheel: Path) -> str:
    with zipfile.ZipFile(wheel) as archive:
        (name,) = [name for name in archive.namelist() if re.fullmatch(r"[^/]+\.dist-info/RECORD", name)]
        return archive.read(name).decode()


def captured(bed: Bed, image: str, wheelhouse: Path, *, system: bool, **changes: Any) -> dict[str, Any]:
    """Return a lock of the image with what is in a wheelhouse, taken inside a container."""
    names = " ".join(wheel.name.split("-")[0] for wheel in sorted(wheelhouse.glob("*.whl")))
    script = INSTALL.format(options="--system-site-packages" if system else "", names=names)
    mounts = ["-v", f"{ROOT}:/el:ro", "-v", f"{wheelhouse}:/wheels:ro"]
    done = bed.engine.docker("run", "--rm", "--network=none", *mounts, image, "sh", "-c", script)
    facts, unavailable = json.loads(done.stdout.strip().rpartition("\n")[2])
    held = document(facts=facts, unavailable=unavailable, identity=identity(wheelhouse))
    return {**held, **changes}


LDD = '#!/bin/sh\nfor file; do LD_TRACE_LOADED_OBJECTS=1 /lib64/ld-linux-x86-64.so.2 "$file"; done\n'


def published(bed: Bed, folder: Path, dockerfile: str, repository: str, tag: str = "1") -> str:
    """Build an image, flatten it, put it into the registry; return its digest.

    Its context has `ldd` and `ldconfig`.
    """
    folder.mkdir()
    (folder / "ldd").write_text(LDD, encoding="utf-8")
    (folder / "ldd").chmod(0o755)
    shutil.copy2(shutil.which("ldconfig", path="/sbin:/usr/sbin") or "", folder / "ldconfig")
    (folder / "Dockerfile").write_text(dockerfile.format(python=bed.python), encoding="utf-8")
    built = bed.engine.docker("build", "-q", "--network=none", folder).stdout.strip()
    container = bed.engine.docker("create", "--network=none", built).stdout.strip()
    bed.engine.docker("export", "-o", folder / "layer.tar", container)
    bed.engine.docker("rm", container)
    digest = hashlib.sha256((folder / "layer.tar").read_bytes()).hexdigest()
    made = Image((Layer(folder / "layer.tar", f"sha256:{digest}"),), command=("/bin/sh",))
    return bed.registry.push(repository, tag, made)


def written(bed: Bed, base: str, image: str, folder: Path) -> list[str]:
    """Return the files that the layers above the base hold."""
    layers = json.loads(bed.engine.docker("image", "inspect", "-f", "{{json .RootFS.Layers}}", base).stdout)
    bed.engine.docker("save", "-o", folder / "image.tar", image)
    with tarfile.open(folder / "image.tar") as saved:
        manifest = json.load(saved.extractfile("manifest.json") or io.BytesIO())
        names = []
        for layer in manifest[0]["Layers"][len(layers) :]:
            with tarfile.open(fileobj=saved.extractfile(layer)) as tar:
                names += [info.name for info in tar.getmembers() if not info.isdir()]
    return sorted(names)
