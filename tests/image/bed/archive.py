"""A base with apt, and an archive of Debian packages on this machine for it: small ones, made here."""

from __future__ import annotations

import contextlib
import functools
import hashlib
import subprocess
import threading
from collections.abc import Iterator, Mapping
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from tests.image.bed.debian import call, fetch, unpack
from tests.image.bed.images import PACKAGES, PLAIN, Image, Layer, _cached, python_layer

APT = """apt libapt-pkg6.0 dpkg tar libc-bin libacl1 libselinux1 libpcre2-8-0 libmd0 liblz4-1 libzstd1 libudev1
libsystemd0 libgcrypt20 libgpg-error0 libxxhash0 libcap2 libgnutls30 libseccomp2 libp11-kit0 libidn2-0 libunistring2
libtasn1-6 libnettle8 libhogweed6 libgmp10"""
CONTROL = "Package: {name}\nVersion: {version}\nArchitecture: {architecture}\nMaintainer: a test\nDescription: a test\n"


def with_apt(cache: Path, address: str) -> Image:
    """Return a Debian with Python and apt, whose archive is at an address."""
    apt = _cached(cache, "apt", _apt_root)
    folder = cache / "layers"
    source = f"deb [trusted=yes] {address} ./\n".encode()
    digest = hashlib.sha256(source).hexdigest()[:12]
    with contextlib.suppress(FileExistsError):
        (folder / f"source-{digest}/etc/apt/sources.list.d").mkdir(parents=True)
    (folder / f"source-{digest}/etc/apt/sources.list.d/test.list").write_bytes(source)
    tar = folder / f"source-{digest}.tar"
    call(
        [
            "tar",
            "-c",
            "-f",
            str(tar),
            "-C",
            str(folder / f"source-{digest}"),
            "--mtime=@0",
            "--owner=0",
            "--group=0",
            ".",
        ]
    )
    own = Layer(tar, f"sha256:{hashlib.sha256(tar.read_bytes()).hexdigest()}")
    return Image((python_layer(cache), apt, own), PLAIN)


def _apt_root(root: Path, cache: Path) -> None:
    """Unpack apt and dpkg, and write down in dpkg's list that all packages of the base are installed."""
    for name in ("bin", "sbin", "lib", "lib64"):
        (root / "usr" / name).mkdir(parents=True)
        (root / name).symlink_to(f"usr/{name}")
    debs = fetch([f"{name}/bookworm" for name in APT.split()], cache / "debs")
    unpack(debs, root)
    for name in ("doc", "locale", "man", "perl5"):
        subprocess.run(["rm", "-rf", root / "usr/share" / name], check=True)
    dpkg = root / "var/lib/dpkg"
    (dpkg / "updates").mkdir(exist_ok=True)
    (dpkg / "triggers").mkdir(exist_ok=True)
    stanzas = []
    for deb in [*fetch(PACKAGES, cache / "debs"), *debs]:
        fields = call(["dpkg-deb", "-f", str(deb), "Package", "Version", "Architecture", "Multi-Arch", "Provides"])
        stanzas.append(f"{fields.strip()}\nStatus: install ok installed\nMaintainer: Debian\nDescription: unpacked\n")
        name = fields.split()[1]
        same = "Multi-Arch: same" in fields
        (dpkg / "info" / f"{name}{':amd64' if same else ''}.list").touch()
    (dpkg / "info/format").write_text("1\n")
    (dpkg / "status").write_text("\n".join(stanzas))


def deb(
    folder: Path, name: str, version: str, files: Mapping[str, str | bytes], architecture: str = "amd64", **fields: str
) -> None:
    """Write a package; `postinst` among the fields is its script, others are fields of its control file."""
    tree = folder / f".{name}"
    (tree / "DEBIAN").mkdir(parents=True)
    script = fields.pop("postinst", None)
    if script is not None:
        (tree / "DEBIAN/postinst").write_text(f"#!/bin/sh\nset -e\n{script}\n")
        (tree / "DEBIAN/postinst").chmod(0o755)
    more = "".join(f"{field.replace('_', '-')}: {value}\n" for field, value in fields.items())
    control = CONTROL.format(name=name, version=version, architecture=architecture) + more
    (tree / "DEBIAN/control").write_text(control)
    for path, content in files.items():
        (tree / path).parent.mkdir(parents=True, exist_ok=True)
        (tree / path).write_bytes(content.encode() if isinstance(content, str) else content)
        (tree / path).chmod(0o2755 if path.startswith("usr/bin") else 0o644)
    file = folder / f"{name}_{version.replace(':', '%3a')}_{architecture}.deb"
    call(["dpkg-deb", "--build", "--root-owner-group", str(tree), str(file)])
    data = file.read_bytes()
    with (folder / "Packages").open("a") as index:
        index.write(
            f"{control}Filename: ./{file.name}\nSize: {len(data)}\nSHA256: {hashlib.sha256(data).hexdigest()}\n\n"
        )


@contextlib.contextmanager
def served(folder: Path) -> Iterator[str]:
    """Serve a folder on this machine, and yield its address."""

    class Quiet(SimpleHTTPRequestHandler):
        def log_request(self, code: object = "-", size: object = "-") -> None:
            """Say nothing."""

        def log_error(self, *told: object) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=str(folder)))
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
