"""Compares `envlock build` with a Dockerfile written by hand and with cog's, in one run on one base.

    python benchmarks/images.py BASE REGISTRY [--packages 'tensorflow-cpu==2.21.0 six==1.16.0'] [--then six==1.17.0]

Needs Docker with BuildKit, whose builds reach a package index by the host's network; REGISTRY, a prefix of names to push
to, such as localhost:5000/team; and BASE, an image with the Python that runs this, its venv module and pip. The uv beside
that Python is the one of the Dockerfiles. Each of the three is built from nothing, again without a change, with one more
line in the program, and with one other version of a package. Printed are seconds, MB of the image above the base, and MB
that a machine with the image before pulls of the next one.

Seconds are those of what a user types: for envlock `capture`, where packages have changed, and `build`.

cog itself is not run: no package index has its program. Its Dockerfile is the one that its generator's own test expects
of a CPU model with packages (TestGenerateFullCPU, https://github.com/replicate/cog/tree/6110c912/pkg/dockerfile), with
this base and uv, without weights, system packages, tini, which it downloads from GitHub, and the line that asks for
another frontend.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
MB = 1_000_000
ROUNDS = ("first", "unchanged", "one line", "one package")

# After https://docs.astral.sh/uv/guides/integration/docker/, for a requirements.txt.
HAND = """\
FROM {base}
COPY --from=uv /uv /uvx /bin/
ENV UV_COMPILE_BYTECODE=1 UV_LINK_MODE=copy VIRTUAL_ENV=/opt/venv PATH="/opt/venv/bin:$PATH"
RUN uv venv /opt/venv
WORKDIR /app
RUN --mount=type=cache,target=/root/.cache/uv --mount=type=bind,source=requirements.txt,target=requirements.txt \\
    uv pip install -r requirements.txt
COPY train.py .
CMD ["python", "train.py"]
"""
COG = """\
FROM {base}
ENV DEBIAN_FRONTEND=noninteractive
ENV PYTHONUNBUFFERED=1
ENV LD_LIBRARY_PATH=$LD_LIBRARY_PATH:/usr/lib/x86_64-linux-gnu:/usr/local/nvidia/lib64:/usr/local/nvidia/bin
ENV NVIDIA_DRIVER_CAPABILITIES=all
COPY --from=uv /uv /uvx /usr/local/bin/
ENV UV_SYSTEM_PYTHON=true
COPY --from=cog_build requirements.txt /tmp/requirements.txt
ENV CFLAGS="-O3 -funroll-loops -fno-strict-aliasing -flto -S"
RUN --mount=type=cache,target=/root/.cache/pip uv run pip install --cache-dir /root/.cache/pip -r /tmp/requirements.txt
ENV CFLAGS=
ENV CFLAGS="-O3 -funroll-loops -fno-strict-aliasing -flto -S"
RUN --mount=type=cache,target=/root/.cache/uv uv pip install --no-cache cog
ENV CFLAGS=
RUN find / -type f -name "*python*.so" -printf "%h\\n" | sort -u > /etc/ld.so.conf.d/cog.conf && ldconfig
WORKDIR /src
EXPOSE 5000
ENV COG_PREDICT_TYPE_STUB="train.py:Predictor"
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
    """What a build took, the bytes of its image, and what a pull fetches: sizes by digest."""

    seconds: float
    size: int
    blobs: dict[str, int]


def main() -> None:
    """Build all images in each round, and print a table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("base")
    parser.add_argument("registry")
    parser.add_argument("--packages", default="tensorflow-cpu==2.21.0 six==1.16.0")
    parser.add_argument("--then", default="six==1.17.0")
    given = parser.parse_args()
    run(["docker", "pull", "--quiet", given.base], ROOT)
    print(f"load {os.getloadavg()[0]:.0f} at the start")
    with tempfile.TemporaryDirectory(prefix="envlock-images-") as name:
        folder = Path(name)
        python = folder / "env" / "bin" / "python"
        run([sys.executable, "-m", "venv", folder / "env"], folder)
        run([python, "-m", "pip", "install", "--quiet", *given.packages.split()], folder)
        (folder / "uv").mkdir()
        for program in ("uv", "uvx"):
            shutil.copy2(Path(sys.executable).with_name(program), folder / "uv")
        (folder / "train.py").write_text("import tensorflow\n", encoding="utf-8")
        (folder / "pyproject.toml").write_text(SETTINGS, encoding="utf-8")
        rounds = {}
        for name in ROUNDS:
            if name == "one line":
                (folder / "train.py").write_text("import tensorflow\nprint(1)\n", encoding="utf-8")
            if name == "one package":
                run([python, "-m", "pip", "install", "--quiet", given.then], folder)
            has_new_packages = name in ("first", "one package")
            rounds[name] = build_all(folder, python, given.base, given.registry, has_new_packages)
            print(f"load {os.getloadavg()[0]:.0f} after {name}")
    print_table(rounds, measure([], ROOT, given.base, given.registry))


def print_table(rounds: dict[str, dict[str, Built]], base: Built) -> None:
    """Print a row for each image, and how envlock's compares with the others."""
    print(
        "| image | first, s | MB | unchanged, s | one line, s | pull, MB | one package, s | pull, MB |"
    )
    print("|---|--:|--:|--:|--:|--:|--:|--:|")
    rows = {}
    for kind in rounds["first"]:
        first, unchanged, line, package = (rounds[name][kind] for name in ROUNDS)
        rows[kind] = [
            *(first.seconds, (first.size - base.size) / MB, unchanged.seconds),
            *(line.seconds, sum_new(line, unchanged), package.seconds, sum_new(package, line)),
        ]
    for kind, row in rows.items():
        print(f"| {kind} | {' | '.join(map(format_number, row))} |")
    *others, (_, own) = rows.items()
    for kind, row in others:
        ratios = [mine / theirs for mine, theirs in zip(own, row, strict=True)]
        print(f"| envlock : {kind} | {' | '.join(map(format_number, ratios))} |")


def sum_new(built: Built, before: Built) -> float:
    """Return the MB that a machine with the image before pulls."""
    return sum(size for digest, size in built.blobs.items() if digest not in before.blobs) / MB


def format_number(number: float) -> str:
    """Return a number with two digits or more."""
    return f"{number:,.0f}" if number >= 10 else f"{number:.2g}"


def build_all(
    folder: Path, python: Path, base: str, registry: str, has_new_packages: bool
) -> dict[str, Built]:
    """Build the images of an environment, by these Dockerfiles and by envlock."""
    found = {}
    frozen = run([python, "-m", "pip", "freeze"], folder)
    for kind, text in {"by hand": HAND, "cog's": COG}.items():
        tag = "envlock-benchmark-" + kind.replace(" ", "-").replace("'", "")
        context = folder / tag
        context.mkdir(exist_ok=True)
        (context / "Dockerfile").write_text(text.format(base=base), encoding="utf-8")
        (context / "requirements.txt").write_text(frozen, encoding="utf-8")
        shutil.copy2(folder / "train.py", context)
        command = ["docker", "build", "--quiet", "--network=host", "--tag", tag, str(context)]
        command += ["--build-context", f"uv={folder / 'uv'}"]
        command += ["--build-context", f"cog_build={context}"]
        found[kind] = measure([command], folder, tag, registry)
    tag = "envlock-benchmark-envlock"
    envlock = [sys.executable, "-m", "envlock"]
    commands = (
        [[*envlock, "capture", "--quiet", "--python", str(python)]] if has_new_packages else []
    )
    commands += [
        [*envlock, "build", "--quiet", "--python", str(python), "--base", base, "--tag", tag]
    ]
    found["envlock"] = measure(commands, folder, tag, registry)
    return found


def measure(commands: list[list[str]], folder: Path, tag: str, registry: str) -> Built:
    """Run commands that build an image, and measure them and it."""
    # A cache of its own, so that the first build has none.
    environ = {"PYTHONPATH": str(ROOT), "XDG_CACHE_HOME": str(folder / "cache")}
    begin = time.monotonic()
    for command in commands:
        run(command, folder, environ)
    seconds = time.monotonic() - begin
    size = int(run(["docker", "image", "inspect", "--format", "{{.Size}}", tag], ROOT))
    name = f"{registry}/{tag.rpartition('/')[2].partition(':')[0]}:latest"
    run(["docker", "tag", tag, name], ROOT)
    run(["docker", "push", "--quiet", name], ROOT)
    manifest = json.loads(run(["docker", "buildx", "imagetools", "inspect", "--raw", name], ROOT))
    blobs = [manifest["config"], *manifest["layers"]]
    return Built(seconds, size, {blob["digest"]: blob["size"] for blob in blobs})


def run(command: Sequence[str | Path], folder: Path, environ: dict[str, str] | None = None) -> str:
    """Return what a command prints; its errors are shown, and end this."""
    variables = {**os.environ, "DOCKER_BUILDKIT": "1", **(environ or {})}
    done = subprocess.run(
        command, cwd=folder, env=variables, stdout=subprocess.PIPE, text=True, check=True
    )
    return done.stdout


if __name__ == "__main__":
    main()
