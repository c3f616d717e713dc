"""`envlock doctor`"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated, Any

import typer

from envlock.cli import config as settings
from envlock.cli.options import FormatOption, PythonOption, QuietOption, one_of, read_document
from envlock.cli.output import color, emit, talk
from envlock.lock.live import live
from envlock.reports.json import dump
from envlock.reports.text import paint
from envlock.runtime.errors import UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from envlock.determinism.doctor.environment import Environment
    from envlock.determinism.doctor.finding import Diagnosis
    from envlock.determinism.proof import Shown

PatientArgument = Annotated[
    str | None,
    typer.Argument(
        metavar="LOCK",
        help="Look at the environment that this lockfile describes; - is stdin. Default: the live one.",
        show_default=False,
    ),
]
FixOption = Annotated[
    bool, typer.Option("--fix-env", help="Print only lines for a shell that put the variables right.")
]
ProveOption = Annotated[
    bool, typer.Option("--prove", help="Let TensorFlow show its state by what it does, in a child process (seconds).")
]
WithOption = Annotated[
    str | None,
    typer.Option("--with", help="With --prove: Python lines that your program begins with.", show_default=False),
]


def doctor(
    lock: PatientArgument = None,
    python: PythonOption = None,
    fix_env: FixOption = False,
    prove: ProveOption = False,
    lines: WithOption = None,
    format: FormatOption = "text",  # noqa: A002 (the option's name)
    quiet: QuietOption = False,
) -> None:
    """Is this environment sound and deterministic?

    Exit 0: nothing is an error, 1: something is. Every finding has its evidence, a reason and a remedy; a sound
    environment gives none. Nothing is changed.

    \b
    Examples:
      envlock doctor                            the live environment
      envlock doctor gpu.lock                   what a lockfile describes
      eval "$(envlock doctor --fix-env)"        set and unset the variables that are wrong
      envlock doctor --prove                    is op determinism really on? told by behaviour
      envlock doctor --prove --with "$(head -n 9 train.py)"
                                                ... after the lines that your program begins with
    """
    one_of(format, ["text", "json"], "format")
    if lines is not None and not prove:
        raise UsageError("--with says what to run before the proof", hint="add --prove")
    document = None if lock is None else read_document(lock, settings.load(Path.cwd()))[1]
    diagnosis, shown = _asked(document, python, prove=prove, lines=lines, quiet=quiet)
    emit_all(diagnosis, shown, format=format, fix_env=fix_env, quiet=quiet)
    raise typer.Exit(0 if fix_env else diagnosis.exit_code)


def _asked(
    document: dict[str, Any] | None, python: Path | None, *, prove: bool, lines: str | None, quiet: bool
) -> tuple[Diagnosis, list[Shown]]:
    """Return the findings of the rules, or those of the proof with the states it is about."""
    if not prove:
        from envlock.determinism.doctor.rules import diagnose

        return diagnose(_patient(document, python)), []
    from envlock.determinism import proof
    from envlock.determinism.doctor.finding import Diagnosis
    from envlock.determinism.prove import observe

    talk("letting TensorFlow show its state", quiet=quiet)
    seen = observe(python, lines)
    shown = proof.states(seen)
    facts = None if document is None else document["facts"]
    return Diagnosis(proof.missed(shown, proof.wanted(facts), seen["tensorflow"])), shown


def _patient(document: dict[str, Any] | None, python: Path | None) -> Environment:
    from envlock.determinism.doctor.examine import of_live, of_lock

    return of_lock(document) if document is not None else of_live(live(python), os.environ, python)


def emit_all(diagnosis: Diagnosis, shown: list[Shown], *, format: str, fix_env: bool, quiet: bool) -> None:  # noqa: A002
    """Print what was asked for; of a sound environment nothing, but a word on stderr."""
    from envlock.determinism.doctor.values import exports

    if fix_env:
        text = "\n".join(exports(diagnosis))
    elif format == "json":
        text = dump({**diagnosis.to_json(), **({"shown": [each.to_json() for each in shown]} if shown else {})})
    else:
        states = [("plain", f"{each.what}: {each.state} ({each.evidence})") for each in shown]
        text = paint([*states, *diagnosis.lines()], color=color())
    if text:
        emit(text)
    if not diagnosis.findings and not fix_env:
        talk("sound: nothing was found" if not shown else "everything is as it was asked for", quiet=quiet)
