"""Compares the image of `envlock build` with those of a Dockerfile written by hand and of cog's.

    python benchmarks/images.py BASE [--packages 'tensorflow-cpu==2.21.0 six==1.16.0'] [--then six==1.17.0]
        [--registry localhost:5000/team] [--without-cog]

Needs Docker with BuildKit, whose builds reach a package index by the host's network, and BASE, an image with the
Python that runs this, its venv module and pip. Each of the three is built from nothing, again without a change, with one
more line in the program, and with one other version of a package. Printed are seconds, MB received from the network,
layers and MB above the base, and MB of layers that an image does not share with the one before, unpacked, and as a
registry has them if one is named: what a push sends and a pull fetches.

cog itself is not run. Its Dockerfile is what its generator writes for a CPU model with python_requirements
(https://github.com/replicate/cog/blob/6110c912/pkg/dockerfile/standard_generator.go), without tini, weights and the line
that asks for another frontend.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tarfile
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
MB = 1_000_000

HAND = """\
FROM {base}
ENV UV_COMPILE_BYTECODE=1 UV_LINK_MODE=copy
RUN --mount=type=cache,target=/root/.cache/pip python3 -m venv /opt/uv && /opt/uv/bin/pip install uv
WORKDIR /app
RUN --mount=type=cache,target=/root/.cache/uv --mount=type=bind,source=requirements.txt,target=requirements.txt \\
    /opt/uv/bin/uv venv /opt/venv && /opt/uv/bin/uv pip install --python /opt/venv -r requirements.txt
ENV PATH="/opt/venv/bin:$PATH"
COPY train.py .
CMD ["python", "train.py"]
"""
COG = """\
FROM {base}
ENV DEBIAN_FRONTEND=noninteractive
ENV PYTHONUNBUFFERED=1
RUN python3 -m venv /opt/venv
ENV PATH="/opt/venv/bin:$PATH"
RUN --mount=type=cache,target=/root/.cache/pip pip install --cache-dir /root/.cache/pip uv
COPY requirements.txt /tmp/requirements.txt
RUN --mount=type=cache,target=/root/.cache/pip pip install --cache-dir /root/.cache/pip -r /tmp/requirements.txt
RUN --mount=type=cache,target=/root/.cache/pip pip install --cache-dir /root/.cache/pip coglet cog
RUN find / -type f -name "*python*.so" -printf "%h\\n" | sort -u > /etc/ld.so.conf.d/cog.conf && ldconfig
WORKDIR /src
EXPOSE 5000
CMD ["python", "-m", "cog.server.http"]
COPY . /src
"""


SETTINGS = """\
[tool.envlock.container]
copy = ["train.py"]
workdir = "/app"
command = ["python", "train.py"]
"""


class Built(NamedTuple):
    """What one build took and gave; sizes in bytes, layers by their digest, packed ones where a registry has them."""

    seconds: float
    received: int
    layers: dict[str, int]
    packed: dict[str, int]


def main() -> None:
    """Build all images twice, and print a table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("base")
    parser.add_argument("--packages", default="tensorflow-cpu==2.21.0 six==1.16.0")
    parser.add_argument("--then", default="six==1.17.0")
    parser.add_argument("--registry", help="a prefix of names to push to")
    parser.add_argument("--without-cog", action="store_true", help="needs 5 GB less")
    given = parser.parse_args()
    run(["docker", "pull", "--quiet", given.base], ROOT)
    recipes = {"by hand": HAND, **({} if given.without_cog else {"cog's": COG})}
    with tempfile.TemporaryDirectory(prefix="envlock-images-") as name:
        folder = Path(name)
        python = folder / "env" / "bin" / "python"
        run([sys.executable, "-m", "venv", folder / "env"], folder)
        run([python, "-m", "pip", "install", "--quiet", *given.packages.split()], folder)
        program = folder / "train.py"
        program.write_text("import tensorflow\n", encoding="utf-8")
        (folder / "pyproject.toml").write_text(SETTINGS, encoding="utf-8")
        rounds = {}
        for name in ("first", "unchanged", "one line", "one package"):
            if name == "one line":
                program.write_text("import tensorflow\nprint(1)\n", encoding="utf-8")
            if name == "one package":
                run([python, "-m", "pip", "install", "--quiet", given.then], folder)
            rounds[name] = build_all(folder, python, given.base, recipes, given.registry)
    print_table(rounds, list_layers(given.base))


def print_table(rounds: dict[str, dict[str, Built]], base: dict[str, int]) -> None:
    """Print a row for each image in each round."""
    print(
        "| image | round | build, s | received, MB | layers | MB above the base | new layers, MB | packed |"
    )
    print("|---|---|--:|--:|--:|--:|--:|--:|")
    before = dict.fromkeys(rounds["first"], base)
    for name, built in rounds.items():
        for kind, image in built.items():
            own = {digest: size for digest, size in image.layers.items() if digest not in base}
            new = {digest: size for digest, size in own.items() if digest not in before[kind]}
            packed = {digest: size for digest, size in image.packed.items() if digest in new}
            cells = [
                *(kind, name, f"{image.seconds:.1f}", f"{image.received / MB:.0f}", str(len(own))),
                *(f"{sum(sizes.values()) / MB:.1f}" for sizes in (own, new, packed)),
            ]
            print(f"| {' | '.join(cells)} |")
            before[kind] = image.layers


def push(tag: str, registry: str) -> list[int]:
    """Push an image, and return the sizes of its layers as the registry has them."""
    name = f"{registry}/{tag}:latest"
    run(["docker", "tag", tag, name], ROOT)
    run(["docker", "push", "--quiet", name], ROOT)
    manifest = json.loads(run(["docker", "buildx", "imagetools", "inspect", "--raw", name], ROOT))
    return [layer["size"] for layer in manifest["layers"]]


def name_tag(kind: str) -> str:
    """Return the name of the image of a kind."""
    return "envlock-benchmark-" + kind.replace(" ", "-").replace("'", "")


def build_all(
    folder: Path, python: Path, base: str, recipes: dict[str, str], registry: str | None
) -> dict[str, Built]:
    """Build the images of an environment, by these Dockerfiles and by envlock."""
    frozen = run([python, "-m", "pip", "freeze", "--exclude", "tf-envlock"], folder)
    (folder / "requirements.txt").write_text(frozen, encoding="utf-8")
    found = {}
    for kind, text in recipes.items():
        tag = name_tag(kind)
        context = folder / tag
        context.mkdir(exist_ok=True)
        (context / "Dockerfile").write_text(text.format(base=base), encoding="utf-8")
        for file in ("requirements.txt", "train.py"):
            (context / file).write_bytes((folder / file).read_bytes())
        command: list[str | Path] = ["docker", "build", "--quiet", "--network=host", "-t", tag]
        found[kind] = measure([*command, context], folder, tag, registry)
    # Its own caches, so that the first build has none.
    environ = {"PYTHONPATH": str(ROOT), "XDG_CACHE_HOME": str(folder / "cache")}
    envlock = [sys.executable, "-m", "envlock"]
    run([*envlock, "capture", "--python", python], folder, environ)
    tag = name_tag("envlock")
    command = [*envlock, "build", "--quiet", "--python", python, "--base", base, "--tag", tag]
    found["envlock"] = measure(command, folder, tag, registry, environ)
    return found


def measure(
    command: list[str | Path],
    folder: Path,
    tag: str,
    registry: str | None,
    environ: dict[str, str] | None = None,
) -> Built:
    """Run a build, and measure it and its image."""
    received, begin = count_received(), time.monotonic()
    run(command, folder, environ)
    seconds, received = time.monotonic() - begin, count_received() - received
    layers = list_layers(tag)
    packed = dict(zip(layers, push(tag, registry), strict=True)) if registry else {}
    return Built(seconds, received, layers, packed)


def count_received() -> int:
    """Return the bytes that this machine has received from the network, its own left out."""
    lines = Path("/proc/net/dev").read_text(encoding="utf-8").splitlines()[2:]
    fields = [line.replace(":", " ").split() for line in lines]
    return sum(int(each[1]) for each in fields if each[0] != "lo")


def list_layers(image: str) -> dict[str, int]:
    """Return the size of each layer of an image, unpacked, by its digest."""
    shown = run(["docker", "image", "inspect", "--format", "{{json .RootFS.Layers}}", image], ROOT)
    with tempfile.TemporaryFile() as file:
        subprocess.run(["docker", "save", image], stdout=file, check=True)
        file.seek(0)
        with tarfile.open(fileobj=file) as saved:
            manifest = json.load(saved.extractfile("manifest.json"))  # type: ignore[arg-type]
            sizes = [saved.getmember(name).size for name in manifest[0]["Layers"]]
    return dict(zip(json.loads(shown), sizes, strict=True))


def run(command: list[str | Path], folder: Path, environ: dict[str, str] | None = None) -> str:
    """Return what a command prints; its errors are shown, and end this."""
    variables = {**os.environ, "DOCKER_BUILDKIT": "1", **(environ or {})}
    done = subprocess.run(
        command, cwd=folder, env=variables, stdout=subprocess.PIPE, text=True, check=True
    )
    return done.stdout


if __name__ == "__main__":
    main()
