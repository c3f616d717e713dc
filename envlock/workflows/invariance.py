"""Measure whether the result for a sample depends on its batch, and what would make it independent."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

from envlock.guest.target import Target, parse_target
from envlock.lock.temporary import open_draft_folder
from envlock.numerics.invariance import (
    LARGEST,
    MODES,
    ONEDNN,
    InvarianceEvidence,
    ModeBits,
    judge_invariance,
    read_modes,
    turn_onednn,
)
from envlock.numerics.session import Host, Session
from envlock.runtime.errors import UsageError
from envlock.runtime.report import Report, clean
from envlock.workflows.progress import SILENT, Progress

COMPILED = "xla"
"""XLA compiles a program for each batch size, some for seconds, so only a few sizes are measured."""
FEW = (1, 2, 3, 4, 8, 16, 33)
"""Sizes around which kernels change: one row, a processor's vector, a block of a matrix product,
and neighbours.
"""
SEED = 0  # of the inputs that are made up: any number, but the same in each mode
LIMIT = 1800.0  # seconds for one measurement: a large model has hundreds of batches, and XLA compiles some of them


def invariance(
    model: str,
    *,
    modes: Sequence[str] = (),
    largest: int = LARGEST,
    inputs: Path | None = None,
    python: Path | None = None,
    progress: Progress = SILENT,
) -> Report[InvarianceEvidence]:
    """Return whether the result for a sample depends on the size of its batch, its place there, and
    the other rows.

    The evidence has the batches with equal bits in each mode, the first layer that differs, and the
    remedies that were measured to help.

    Args:
        model: a file of Keras, the folder of a SavedModel, or `SCRIPT:FUNCTION` or
            `PACKAGE.MODULE:FUNCTION`, which returns a model, or a model or function with its
            inputs.
        modes: some of MODES; all that the model supports when empty.
        largest: rows of the largest batch.
        inputs: arrays that `numpy.save` or `numpy.savez` wrote, whose first axis is the batch; made
            up when not given.
        python: the interpreter; this one when not given.
        progress: shows what is being done.

    Raises:
        UsageError: there is no such model, mode or interpreter, or it cannot be called.
    """
    unknown = [mode for mode in modes if mode not in MODES]
    if unknown:
        raise UsageError(f"unknown mode `{unknown[0]}`", hint=f"choose from: {', '.join(MODES)}")
    if largest < 2:
        raise UsageError("a batch of one row has no other rows", hint="use `--largest 2` or more")
    asked: dict[str, object] = {
        **describe_model(model),
        "inputs": None,
        "sizes": {mode: choose_sizes(mode, largest) for mode in modes or MODES},
        "seed": SEED,
    }
    if inputs is not None:
        asked["inputs"] = str(inputs)
    progress.say(f"measuring {model} in batches of 1 to {largest} (starts TensorFlow)")
    environment, found = measure(asked, python, os.environ)
    onednn = os.environ.get(ONEDNN)
    switched: tuple[ModeBits, ...] = ()
    if any(bits.is_compared and not bits.is_invariant for bits in found):
        value = turn_onednn(onednn)
        progress.say(f"measuring again with {ONEDNN}={value}")
        _, switched = measure(asked, python, {**os.environ, ONEDNN: value})
    evidence = InvarianceEvidence(environment, onednn, found, switched)
    return judge_invariance(evidence, modes, model, SEED)


def describe_model(text: str) -> dict[str, object]:
    """Return the description of a model for the guest program.

    Raises:
        UsageError: there is no such file, folder or function.
    """
    path = Path(text)
    if path.is_dir() or path.suffix in (".keras", ".h5"):
        if not path.exists():
            raise UsageError(f"model not found: {text}")
        return {"model": str(path), **Target(path, None).to_json()}
    wanted = parse_target(text)
    if wanted.function is None:
        hint = "write SCRIPT.py:FUNCTION, PACKAGE.MODULE:FUNCTION, MODEL.keras or the folder of a SavedModel"
        raise UsageError(f"`{text}` names no function that returns a model", hint=hint)
    return {"model": None, **wanted.to_json()}


def choose_sizes(mode: str, largest: int) -> list[int]:
    """Return the batch sizes that are measured in a mode, the smallest first."""
    if mode == COMPILED:
        return sorted({*(size for size in FEW if size <= largest), largest})
    return list(range(1, largest + 1))


def measure(
    asked: Mapping[str, object], python: Path | None, environ: Mapping[str, str]
) -> tuple[dict[str, str], tuple[ModeBits, ...]]:
    """Return the versions of the software that computed, and the results in each mode.

    Raises:
        UsageError: the model cannot be loaded or called, or the program ended early.
    """
    said: dict[str, Any] = {"ends": {}}
    with open_draft_folder(None) as folder, closing(Session()) as session, suppress(TimeoutError):
        wanted = {"observer": "batches", "folder": str(folder), "runs": [0], **asked}
        said = session.make_runs(wanted, Host(python, environ), LIMIT)
    if "unusable" in said:
        raise UsageError(
            str(said["unusable"]),
            hint="run `envlock invariance --help` for what can be measured, and how",
        )
    end = said["ends"].get(0, {"message": f"it did not answer within {LIMIT:g} s"})
    if "message" in end:
        message = f"the measurement failed: {clean(end['message'])}"
        raise UsageError(
            message, hint="try a smaller batch with --largest, or one mode with --mode"
        )
    return dict(end["environment"]), read_modes(end["batches"])
