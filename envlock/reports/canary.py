"""The canary for people: a heading a group with its conditions, a line an operation."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from envlock.runtime.report import Report, clean, count

LEFT_OUT = {
    "state": "reads or changes a variable, an iterator or a table",
    "text": "takes text",
    "random": "draws from a generator of its own",
    "control": "a function that TensorFlow does not take apart",
    "unlisted": "not in the table of operations that are safe to run from a lockfile",
    "large": "tensors of more than 512 MiB",
    "shape": "the shape of its result depends on data",
    "empty": "its result has no numbers",
    "failed": "does not compute on inputs that are made up",
    "unstable": "its bits differ from call to call",
    "ended": "ends the process",
    "time": "the time for computing was up",
    "room": "more than 500 operations",
}
"""Why an operation of a program is not computed again, by the word in the lockfile."""
SHORT = 16  # hexadecimal digits of a digest


def lines(report: Report) -> Iterator[tuple[str, str]]:
    """Yield (style, line): what differs from the lock's canary, or the canary itself where there was none."""
    if report.policy is None:
        yield from _render_section(report.attachments["numerics"])
    else:
        yield from report.lines()


def _render_section(numerics: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    versions = f"TensorFlow {clean(numerics['tensorflow'])}, NumPy {clean(numerics['numpy'])}"
    yield "plain", f"{versions}, battery {numerics['battery']}"
    for name, group in numerics["groups"].items():
        yield "title", f"{clean(name)}: {_describe_conditions(group['conditions'])}"
        for operation, result in group["operations"].items():
            yield _render_line(clean(operation), result)
        if group.get("ended"):
            yield "error", f"  TensorFlow crashed: {clean(group['ended'])}"
    if "program" in numerics:
        yield from coverage(numerics["program"])
        for name, operation in numerics["program"]["operations"].items():
            yield _render_line(clean(name), operation["result"])


def coverage(program: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield (style, line): how many of a program's own operations are covered, and why the others are not."""
    for target, each in program["targets"].items():
        covered = f"{each['covered']} of {count(each['distinct'], 'distinct operation')} covered"
        yield "title", f"{clean(target)}: {covered}; {_describe_conditions(program['conditions'])}"
        for reason, kinds in each["left_out"].items():
            names = []
            for kind, number in kinds.items():
                name = clean(kind)
                if number > 1:
                    name = f"{number} {name}"
                names.append(name)
            yield "unknown", f"  not covered: {', '.join(names)} ({LEFT_OUT[reason]})"
        if each.get("cut"):
            yield (
                "unknown",
                "  not covered: what it runs later (the time for noting operations was up)",
            )


def _describe_conditions(head: Mapping[str, Any]) -> str:
    threads = f"{head['intra_op_threads']} intra-op and {head['inter_op_threads']} inter-op threads"
    return f"{clean(head['device'])}, {head['execution']}, {threads}, op determinism {head['determinism']}"


def _render_line(name: str, result: Mapping[str, Any]) -> tuple[str, str]:
    if "failed" in result:
        return "unknown", f"  {name:<22} failed: {clean(result['failed'])}"
    shape = "x".join(map(str, result["shape"])) or "scalar"
    if "unstable" in result:
        return "unknown", f"  {name:<22} {shape:<14} unstable: different bits from call to call"
    return "plain", f"  {name:<22} {shape:<14} {result['sha256'][:SHORT]}"
