"""What the canary tells apart: the causes provoked for real, fresh processes, versions of TensorFlow.

    python benchmarks/canary.py causes PYTHON [OTHER ...]    # causes against PYTHON's TensorFlow: is it named right?
    python benchmarks/canary.py fresh PYTHON [--runs 20]     # are fresh processes identical, and what do they cost?
    python benchmarks/canary.py versions PYTHON PYTHON ...   # what differs from the last one's TensorFlow

Each PYTHON is the interpreter of an environment with another TensorFlow. Prints Markdown. A provocation that this
processor is too old or too new for changes nothing, and the table says so.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from envlock.evidence.canary.canary_comparison import Comparison, compare
from envlock.evidence.canary.canary_run import Canary, Settings, compute
from envlock.guest.launch import read

THREADS_AS_THEY_ARE = Settings(threads=None)
DETERMINISM_AS_IT_IS = Settings(determinism=None)


class Provocation(NamedTuple):
    """One way to provoke a cause: what to set, against which variables, under which settings."""

    cause: str
    environ: dict[str, str]
    against: dict[str, str] = {}  # noqa: RUF012 (never changed)
    settings: Settings = Settings()
    stand_in: bool = False

    @property
    def shown(self) -> str:
        """Return it in words."""
        if self.stand_in:
            return "stand-in for a processor with AMX: three operations with inputs rounded to bfloat16"
        text = " ".join(f"`{name}={value}`" for name, value in self.environ.items())
        base = " ".join(f"`{value}`" for value in self.against.values())
        return f"{text} against {base}" if base else text


PROVOCATIONS = [
    *(
        Provocation(
            "threads",
            {"TF_NUM_INTRAOP_THREADS": n},
            {"TF_NUM_INTRAOP_THREADS": "2"},
            THREADS_AS_THEY_ARE,
        )
        for n in ("1", "4", "8")
    ),
    Provocation("onednn-off", {"TF_ENABLE_ONEDNN_OPTS": "0"}),
    Provocation("isa-avx2", {"ONEDNN_MAX_CPU_ISA": "AVX2"}),
    Provocation("isa-sse41", {"ONEDNN_MAX_CPU_ISA": "SSE41"}),
    Provocation("reduced-precision", {"ONEDNN_DEFAULT_FPMATH_MODE": "BF16"}),
    Provocation("reduced-precision", {}, stand_in=True),
    Provocation("determinism", {"TF_DETERMINISTIC_OPS": "1"}, {}, DETERMINISM_AS_IT_IS),
    Provocation("xla", {"XLA_FLAGS": "--xla_cpu_max_isa=SSE4_2"}),
    Provocation("xla", {"XLA_FLAGS": "--xla_cpu_enable_fast_math=true"}),
    Provocation("xla", {"XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false"}),
    Provocation("numpy", {"OPENBLAS_CORETYPE": "Haswell"}),
    Provocation("numpy", {"OPENBLAS_CORETYPE": "Nehalem"}),
]

ROUNDED = ("conv_forward", "conv_input_gradient", "depthwise")
"""What a processor with AMX computes in bfloat16 when it may (measured-amx in canary.toml)."""
STAND_IN = f"""
def _rounding(make):
    def operations(tf, x):
        def rounded(shape, salt):
            return tf.cast(tf.cast(x(shape, salt), tf.bfloat16), tf.float32)
        found, other = make(tf, x), make(tf, rounded)
        return dict((name, (other if name in {ROUNDED} else found)[name]) for name in found)
    return operations
make_onednn_operations = _rounding(make_onednn_operations)
"""


@contextmanager
def variables(changes: dict[str, str]) -> Iterator[None]:
    """Set variables for the children of the block."""
    before = dict(os.environ)
    os.environ.update(changes)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


def take(
    python: Path, environ: dict[str, str], settings: Settings, program: str | None = None
) -> Canary:
    """Return the canary under variables."""
    with variables(environ):
        return compute(python, settings, program=program)


def stand_in() -> str:
    """Return the battery with the rounding put in before it runs."""
    before, marker, after = read("battery").rpartition('if __name__ == "__main__":')
    return before + STAND_IN + marker + after


def causes(python: Path, others: list[Path]) -> None:
    """Print which cause is named for each provocation."""
    print(
        "| provoked | by | operations that differ | named | share | next | right |\n|---|---|---|---|--:|---|---|"
    )
    bases: dict[str, Canary] = {}
    right: dict[str, list[bool]] = {}
    for each in PROVOCATIONS:
        key = repr((each.against, each.settings))
        if key not in bases:
            bases[key] = take(python, each.against, each.settings)
        live = take(python, each.environ, each.settings, stand_in() if each.stand_in else None)
        _row(each.cause, each.shown, compare(bases[key].numerics, live.numerics), right)
    default = repr(({}, Settings()))
    for other in others:
        live = take(other, {}, Settings())
        how = f"{live.numerics.tensorflow} against {bases[default].numerics.tensorflow}"
        _row("tensorflow", how, compare(bases[default].numerics, live.numerics), right)
    named = sorted(cause for cause, hits in right.items() if any(hits))
    print(f"\n{len(named)} of {len(right)} causes named right: {', '.join(named)}")


def _row(cause: str, how: str, found: Comparison, right: dict[str, list[bool]]) -> None:
    names = [each.operation or f"({each.group} dies)" for each in found.differences]
    if not names:
        print(f"| {cause} | {how} | none: it changes nothing here | - | - | - | - |", flush=True)
        return
    first = found.suspects[0]
    after = (
        f"{found.suspects[1].cause.id} {found.suspects[1].share:.1%}"
        if len(found.suspects) > 1
        else "-"
    )
    hit = first.cause.id == cause
    right.setdefault(cause, []).append(hit)
    row = [
        cause,
        how,
        ", ".join(names),
        first.cause.id,
        f"{first.share:.1%}",
        after,
        "yes" if hit else "NO",
    ]
    print(f"| {' | '.join(row)} |", flush=True)


def fresh(python: Path, runs: int) -> None:
    """Print how many different results fresh processes give, and what they cost after TensorFlow's import."""
    found = [compute(python, Settings()) for _ in range(runs)]
    distinct = {each.numerics.model_dump_json() for each in found}
    unstable = [
        name
        for group in found[0].numerics.groups.values()
        for name, op in group.operations.items()
        if op.unstable
    ]
    print(
        f"{runs} fresh processes: {len(distinct)} distinct result(s); unstable: {unstable or 'none'}"
    )
    for name, values in (
        ("wall", [each.seconds or 0 for each in found]),
        ("CPU", [each.cpu_seconds or 0 for each in found]),
    ):
        print(f"{name} time after the import: median {statistics.median(values):.2f} s, ", end="")
        print(f"least {min(values):.2f} s, most {max(values):.2f} s")
    print(f"load average {os.getloadavg()[0]:.1f} on {os.cpu_count()} processors")


def versions(pythons: list[Path]) -> None:
    """Print which operations differ between the last TensorFlow and each of the others, and how far."""
    canaries = [compute(python, Settings()).numerics for python in pythons]
    last = canaries[-1]
    heads = [f"{each.tensorflow} (NumPy {each.numpy})" for each in canaries[:-1]]
    found = [compare(last, each) for each in canaries[:-1]]
    print(f"| operation, against {last.tensorflow} (NumPy {last.numpy}) | {' | '.join(heads)} |")
    print("|---|" + "---|" * len(found))
    for group, content in last.groups.items():
        for operation in content.operations:
            print(
                f"| {operation} | {' | '.join(_cell(each, f'numerics.{group}.{operation}') for each in found)} |"
            )


def _cell(found: Comparison, path: str) -> str:
    for each in found.differences:
        if each.path == path:
            apart = each.distance
            if apart is None or apart.normwise is None:
                return each.what
            return f"{apart.differing}/{apart.sampled}, {apart.median_ulp:g} ULP, {apart.normwise:.2g} eps"
    return "same bits" if path in found.equal else "not compared"


def main() -> None:
    """Run what was asked for."""
    parser = argparse.ArgumentParser(description="Measure what the canary tells apart.")
    parser.add_argument("what", choices=["causes", "fresh", "versions"])
    parser.add_argument("python", type=Path, nargs="+")
    parser.add_argument("--runs", type=int, default=20)
    asked = parser.parse_args()
    if asked.what == "causes":
        causes(asked.python[0], asked.python[1:])
    elif asked.what == "fresh":
        fresh(asked.python[0], asked.runs)
    else:
        versions(asked.python)


if __name__ == "__main__":
    main()
