"""Runs a program in a child process and reads what TensorFlow ran."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from envlock.guest.target import Target
from envlock.numerics.conditions import SEED
from envlock.numerics.programs.parts import XLA, Observed, read_observed
from envlock.numerics.session import Host, run_all
from envlock.runtime.collectors.environment_variables import make_recordable
from envlock.runtime.tables import table

STEPS = 2  # the first step creates variables and is often another graph than the others
SECONDS = 60.0
"""How long a program is watched; a call that has begun then ends."""
LIMIT = 10 * SECONDS
"""How long the whole may take: XLA can compile for minutes."""
FLAGS = "XLA_FLAGS"
WRITING = "--xla_dump_"
"""How a flag begins that only says what XLA writes of its work."""
MODE = "ENVLOCK_MODE"
"""A script that asserts its lockfile on line 1 would refuse XLA_FLAGS, which the run changes."""
LARGEST = 64 << 20
"""Bytes of a module's text that are read; one of ResNet-50's training has 2."""


def observe_runs(
    target: Target,
    python: Path | None,
    folder: Path,
    *,
    environ: Mapping[str, str] | None = None,
    eagerly: Mapping[str, object] | None = None,
    timeout: float = LIMIT,
) -> tuple[Observed, dict[str, Any]]:
    """Return what ran of a program, and what a second run showed, `eagerly`, if one is asked for.

    Args:
        target: the program; it must be a function.
        python: the interpreter; this one when not given.
        environ: the variables to start with; those of this process when not given.
        folder: an empty one, for the log, XLA's modules and a trace.
        eagerly: what is other in the second run, in the same process: see envlock/guest/tracing/run_traces.py.
        timeout: the most seconds that a run may take.

    Raises:
        UsageError: it cannot be run so, or there is no such interpreter.
        FactError: it fails, or TensorFlow does not show its operations.
    """
    dumps = folder / "hlo"
    variables = dict(os.environ if environ is None else environ)
    own = variables.get(FLAGS, "")
    # The last of two equal flags counts.
    flags = [own, f"--xla_dump_to={dumps}", "--xla_dump_hlo_as_text"]
    variables[FLAGS] = " ".join(filter(None, flags))
    variables[MODE] = "off"
    asked = {
        "observer": "graphs" if eagerly is None else "both",
        "folder": str(folder),
        "seed": SEED,
        "steps": STEPS,
        "seconds": SECONDS,
        "eagerly": eagerly,
    }
    ways = ("",) if eagerly is None else ("", " in eager mode")
    seen, *more = run_all(target, asked, Host(python, variables), timeout, ways)
    found = add_flags(read_observed(seen, _read_modules(dumps)), own)
    return found, {} if eagerly is None else more[0]


def add_flags(observed: Observed, flags: str) -> Observed:
    """Return what ran, with the flags of XLA among its switches if XLA compiled a part.

    Some flags, such as fast math, change only the machine code, which no instruction shows.

    Args:
        observed: what ran.
        flags: the value of XLA_FLAGS.
    """
    is_compiled = any(part.kind == XLA for part in observed.parts.values())
    deciding = [flag for flag in flags.split() if not flag.startswith(WRITING)]
    if not is_compiled or not deciding:
        return observed
    row = next(row for row in table("environ") if row["name"] == FLAGS)
    shown = make_recordable(" ".join(deciding), row)
    return replace(observed, switches={**observed.switches, FLAGS: str(shown)})


def _read_modules(folder: Path) -> dict[str, str]:
    """Return the texts that XLA has written, by the name of the file."""
    texts = {}
    for file in sorted(folder.glob("*after_optimizations.txt")):
        if file.stat().st_size <= LARGEST:
            texts[file.name] = file.read_text(encoding="utf-8", errors="replace")
    return texts
