"""The canary for people: a heading a group with its conditions, a line an operation."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from envlock.runtime.report import Report, clean

SHORT = 16  # hexadecimal digits of a digest


def lines(report: Report) -> Iterator[tuple[str, str]]:
    """Yield (style, line): what differs from the lock's canary, or the canary itself where there was none."""
    if report.policy is None:
        yield from _section(report.attachments["numerics"])
    else:
        yield from report.lines()


def _section(numerics: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    versions = f"TensorFlow {clean(numerics['tensorflow'])}, NumPy {clean(numerics['numpy'])}"
    yield "plain", f"{versions}, battery {numerics['battery']}"
    for name, group in numerics["groups"].items():
        yield "title", f"{clean(name)}: {_conditions(group['conditions'])}"
        for operation, result in group["operations"].items():
            yield _line(clean(operation), result)
        if group.get("ended"):
            yield "error", f"  TensorFlow crashed: {clean(group['ended'])}"


def _conditions(head: Mapping[str, Any]) -> str:
    threads = f"{head['intra_op_threads']} intra-op and {head['inter_op_threads']} inter-op threads"
    return f"{clean(head['device'])}, {head['execution']}, {threads}, op determinism {head['determinism']}"


def _line(name: str, result: Mapping[str, Any]) -> tuple[str, str]:
    if "failed" in result:
        return "unknown", f"  {name:<22} failed: {clean(result['failed'])}"
    shape = "x".join(map(str, result["shape"])) or "scalar"
    if "unstable" in result:
        return "unknown", f"  {name:<22} {shape:<14} unstable: different bits from call to call"
    return "plain", f"  {name:<22} {shape:<14} {result['sha256'][:SHORT]}"
