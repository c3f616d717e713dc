"""`envlock export`"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

import envlock
from envlock.cli.options import (
    STDIN,
    LockArgument,
    find_source,
    list_left_out,
)
from envlock.cli.output import Terminal, emit, talk
from envlock.cli.parser import Command, make_app, make_choice
from envlock.image.forms import FORMS
from envlock.lock.writer import write_atomically
from envlock.packages.export_formats import FORMATS
from envlock.runtime.errors import OutsideError
from envlock.runtime.report import count
from envlock.workflows.export import check_destination

app = make_app()
PYLOCK = "pylock"
HOW = {"fetched": "fetched", "cached": "from the cache", "there": "already there"}


@app.command(cls=Command)
def export(
    lock: LockArgument = None,
    format: Annotated[  # noqa: A002 (the option's name)
        str,
        make_choice((*FORMATS, *FORMS), "format", "--format", "-f", help="Format to write."),
    ] = PYLOCK,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="File to write; - for stdout. [default: -]"),
    ] = None,
    wheelhouse: Annotated[
        Path | None,
        typer.Option(
            help="Download the wheels into this folder, and refer to them instead of URLs.",
        ),
    ] = None,
    no_hashes: Annotated[
        bool,
        typer.Option(
            "--no-hashes", help="For requirements: all packages by version, without proofs."
        ),
    ] = False,
) -> None:
    """Export a lockfile in a format of other tools.

    `pylock` is PEP 751, for uv and pip; `requirements` has hashes, for pip. Only packages with a
    proven wheel (`envlock capture --hashes`) are written, and to `pylock` also those from a Git
    repository (`https` or `ssh`), by commit; the others are listed with the reason, in the file and on stderr, and the
    exit code is 1. Packages that no policy compares (`envlock ignore`), and the project itself, do not count.

    `cyclonedx` is a software bill of materials. `slsa` says how the recorded image was built. `compose`, `devcontainer` and
    `kubernetes` start the pushed image by its digest, with the locked GPUs and CPUs. The same
    lockfile gives the same bytes.

    With `--wheelhouse`, every wheel is downloaded and checked against its SHA-256 first. After an interruption, run
    it again: finished files are kept. Exit 5: one could not be downloaded.

    \b
    Examples:
      envlock export -o pylock.toml                              then: uv pip install -r pylock.toml
      envlock export --format requirements -o requirements.txt   then: pip install --no-deps --require-hashes -r ...
      envlock export --format requirements --no-hashes           every version, also without `envlock capture --hashes`
      envlock export -o pylock.toml --wheelhouse wheelhouse      for machines without a network
      envlock export --format cyclonedx -o sbom.cdx.json         every package with purl and hash, and the base image
      envlock export --format kubernetes -o job.yaml             a job for the image of `envlock build --push`
      envlock export --format kubernetes-fleet -o jobs.yaml      the same of many pods, which start together
      envlock export --format jobset -o jobset.yaml              these pods as a JobSet
      envlock export --format slsa -o provenance.json            in-toto provenance of the image
    """
    path = None if str(output) == STDIN else output
    source = find_source(lock)
    if wheelhouse is not None and format in FORMATS and not no_hashes:
        check_destination(format, path, wheelhouse)
        _fill(wheelhouse, source)
    written = envlock.export(
        source, to=format, output=path, wheelhouse=wheelhouse, hashes=not no_hashes
    )
    _write(written.text.encode("utf-8"), path)
    if written.left_out:
        list_left_out(written.left_out, "exported")
        raise typer.Exit(1)


def _fill(folder: Path, source: str | bytes) -> None:
    """Download the wheels of a lockfile into a folder.

    Raises:
        OutsideError: one could not be downloaded.
    """
    found = envlock.vendor(source, folder, progress=Terminal())
    amount = count(found.how.total(), "wheel")
    ways = [f"{found.how[word]} {words}" for word, words in HOW.items() if found.how[word]]
    if ways:
        amount += f" ({', '.join(ways)})"
    talk(f"{folder}: {amount}")
    if found.others:
        others = count(len(found.others), "wheel")
        talk(f"{folder} also holds {others} of other locks")
    if found.missing:
        for package in found.missing:
            talk(f"  {package}")
        wheels = count(len(found.missing) + found.how.total(), "wheel")
        raise OutsideError(
            f"{len(found.missing)} of {wheels} could not be downloaded (listed above)",
            hint="run it again: finished files are kept",
        )


def _write(data: bytes, path: Path | None) -> None:
    if path is None:
        emit(data)
        return
    write_atomically(path, data, "file")
    talk(f"wrote {path}")
