"""`envlock diverge record`"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from envlock.cli.options import PythonOption, QuietOption
from envlock.cli.output import say, talk
from envlock.lock.live import live
from envlock.runtime.errors import UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from envlock.divergence.record import Recorded

OutputOption = Annotated[Path, typer.Option("--output", "-o", help="The trace to write.", show_default=False)]
InGraphOption = Annotated[
    bool, typer.Option("--in-graph", help="As the program runs by itself, with a look into its graphs; else eagerly.")
]
UncheckedOption = Annotated[
    bool,
    typer.Option(
        "--unchecked", help="With --in-graph: do not run it once more to see whether looking changed the result."
    ),
]
StepsOption = Annotated[
    int | None, typer.Option("--steps", help="End the run behind this many steps.", min=1, show_default=False)
]
SeedOption = Annotated[
    int | None, typer.Option("--seed", help="Set all seeds to this before the run.", show_default=False)
]


def record(
    script: Annotated[str, typer.Argument(metavar="SCRIPT[:FUNCTION]", help="What to run.", show_default=False)],
    output: OutputOption,
    args: Annotated[
        list[str] | None,
        typer.Argument(metavar="ARGS...", help="For the script; options after --.", show_default=False),
    ] = None,
    in_graph: InGraphOption = False,
    unchecked: UncheckedOption = False,
    steps: StepsOption = None,
    seed: SeedOption = None,
    python: PythonOption = None,
    quiet: QuietOption = False,
) -> None:
    """Record what every operation of one run computes, to compare it with a run in another environment.

    The trace holds fingerprints of inputs and outputs, lines of your code, and the facts that a lockfile has; no
    value, no path outside of the script's folder, no name of a user or host.

    \b
    Examples:
      envlock diverge record train.py:step -o a.trace              eagerly, operation by operation
      envlock diverge record train.py:step -o a.trace --in-graph   with its graphs, and XLA, as they are
      envlock diverge record train.py:step -o b.trace --python other/bin/python
    """
    if not output.absolute().parent.is_dir():
        raise UsageError(f"there is no folder {output.absolute().parent}", hint="make it first")
    facts = live(python).facts
    how: dict[str, Any] = {"in_graph": in_graph, "check": not unchecked, "seed": seed, "steps": steps}
    found = _recorded(script, args, output, python=python, facts=facts, quiet=quiet, **how)
    _tell(found, output, quiet=quiet)


def _recorded(script: str, args: list[str] | None, output: Path, *, quiet: bool, **how: Any) -> Recorded:
    from envlock.divergence.record import record as recorded
    from envlock.numerics.target import target

    return recorded(target(script, tuple(args or ())), output, say=lambda text: talk(text, quiet=quiet), **how)


def _tell(found: Recorded, output: Path, *, quiet: bool) -> None:
    """Say what was written; what limits it is said also with --quiet."""
    size = f"{found.size / 1e6:.1f} MB" if found.size >= 100_000 else f"{found.size / 1e3:.1f} kB"
    amount = f"{found.entries} entries of {found.steps} {'step' if found.steps == 1 else 'steps'}"
    talk(f"wrote {output}: {amount}, {size}, TensorFlow {found.header.tensorflow}", quiet=quiet)
    warnings = {
        "changed": "looking into the graphs CHANGED THE RESULT: TensorFlow fuses kernels between which nobody "
        "looks, and a fused one can give other bits; the trace is of the program as it ran under the tracer",
        "unstable": "the program computes something else each time, so whether looking into its graphs changed the "
        "result cannot be told; `envlock diverge` finds the cause",
    }
    if found.effect in warnings:
        say(f"warning: {warnings[found.effect]}\n")
    elif found.effect == "none":
        talk("looking into the graphs did not change the result", quiet=quiet)
    if found.end.get("elsewhere"):
        say(f"warning: {found.end['elsewhere']} operations ran in other threads, and were not recorded\n")
    if found.end.get("unseen"):
        say(f"warning: {found.end['unseen']} operations found no room in the table, and were not looked at\n")
