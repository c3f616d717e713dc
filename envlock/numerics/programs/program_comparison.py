"""The fingerprints of programs in a lockfile: which there are, and what runs compared with them. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from envlock.lock.fingerprints import ProgramPart
from envlock.lock.models import Lockfile
from envlock.numerics.programs.parts import Observed
from envlock.runtime.report import ERROR, UNKNOWN, Finding, clean, count

SOURCE = "docs/concepts/evidence.md"
RULE = "program"
"""The rule of a finding that something else runs."""
SWITCHES = "program-switches"
INCOMPARABLE = "program-unknown"
WHY = "TensorFlow is given other things to compute, so that the bits can be others with the same kernels"
AGAIN = "lock what runs now with `envlock capture --program`, if the change is wanted"
SEARCH = "find the package or variable that did it: `envlock bisect`"
LIMITS = "it has no kernels, initial weights, data or host callbacks"


@dataclass
class Compared:
    """What a comparison has found so far.

    Attributes:
        findings: what differs, and what could not be compared.
        equal: paths of the parts that are equal.
    """

    findings: list[Finding] = field(default_factory=list)
    equal: list[str] = field(default_factory=list)

    @property
    def notes(self) -> list[str]:
        """What is equal, a sentence; nothing where nothing is."""
        if not self.equal:
            return []
        return [f"program: {count(len(self.equal), 'part')} as locked; {LIMITS}"]


def find_other_version(locked: str, live: str) -> Finding | None:
    """Return that two versions of TensorFlow do not compare; None where it is one.

    They print the same program otherwise: of three operations, 2.13 and 2.21 share no line.
    """
    if locked == live:
        return None
    return report_unknown(
        "program",
        f"not comparable: the lockfile's is of TensorFlow {clean(locked)}, here is {clean(live)}",
        AGAIN,
    )


def compare_code(name: str, locked: Mapping[str, str], code: Mapping[str, str]) -> Finding | None:
    """Return that the code of a target has changed; None where it has not.

    Args:
        name: of the target.
        locked: digests of its files in the lockfile.
        code: digests of the files now.
    """
    if dict(locked) == dict(code):
        return None
    changed = sorted({clean(file) for file, _ in set(locked.items()) ^ set(code.items())})
    return report_unknown(
        f"program.{name}",
        f"{name}: not compared: the code has changed: {', '.join(changed[:4])}",
        "lock it again with `envlock capture --program`",
    )


def compare_target(
    compared: Compared, name: str, locked: Mapping[str, ProgramPart], live: Observed
) -> None:
    """Add what differs between the parts of a target and those that ran."""
    for part in sorted({*locked, *live.parts}):
        path = f"program.{name}.{part}"
        old, new = locked.get(part), live.parts.get(part)
        if old is not None and new is not None:
            if (old.kind, old.digest) == (new.kind, new.digest):
                compared.equal.append(path)
                continue
            before = f"{old.kind}, {count(old.operations, 'operation')}"
            after = f"{new.kind}, {count(new.operations, 'operation')}"
            message = f"{name}: {part} runs otherwise: locked {before}; live {after}"
            compared.findings.append(report_difference(path, message, old.digest, new.digest))
        elif new is None and (part in live.failed or live.is_cut):
            reason = live.failed.get(part, "the time was up before it ran")
            message = f"{name}: {part} was not seen: {clean(reason)}"
            compared.findings.append(report_unknown(path, message, AGAIN))
        elif old is not None:
            message = f"{name}: {part} does not run; it did when it was locked"
            compared.findings.append(report_difference(path, message, old.digest, None))
        elif new is not None:
            message = f"{name}: {part} runs; it did not when it was locked"
            compared.findings.append(report_difference(path, message, None, new.digest))


def compare_switches(locked: Mapping[str, str], live: Mapping[str, str]) -> Iterator[Finding]:
    """Yield the switches that rewrite or compile a program and differ."""
    for switch in sorted({*locked, *live}):
        old, new = locked.get(switch), live.get(switch)
        if old != new:
            shown = f"locked {clean(old or 'unset')}, live {clean(new or 'unset')}"
            yield Finding(
                SWITCHES,
                ERROR,
                f"program.switches.{switch}",
                message=f"{clean(switch)}: {shown}",
                why="TensorFlow rewrites graphs by it before they run, or XLA makes machine code by it",
                fix=AGAIN,
                source=SOURCE,
                expected=old,
                actual=new,
            )


def report_difference(path: str, message: str, old: str | None, new: str | None) -> Finding:
    """Return the finding that a part differs."""
    return Finding(
        RULE,
        ERROR,
        path,
        message=message,
        why=WHY,
        fix=f"{SEARCH}\n{AGAIN}",
        source=SOURCE,
        expected=old,
        actual=new,
    )


def report_unknown(path: str, message: str, fix: str) -> Finding:
    """Return the finding that something was not compared."""
    return Finding(
        INCOMPARABLE,
        UNKNOWN,
        path,
        message=message,
        why="what was not compared is not known to be the same",
        fix=fix,
        source=SOURCE,
    )


def describe_programs(lock: Lockfile) -> list[str]:
    """Return a line for each program that a lockfile has."""
    if lock.program is None:
        return []
    lines = []
    for name, target in lock.program.targets.items():
        number = sum(part.operations for part in target.parts.values())
        parts = ", ".join(f"{part} ({found.kind})" for part, found in target.parts.items())
        lines.append(f"program of {name}: {count(number, 'operation')} in {parts}")
    return lines
