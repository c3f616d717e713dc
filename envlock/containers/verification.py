"""Is an image the locked environment? What its own Python finds inside, judged here. Pure but for asking."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from envlock.containers.engines.container import Finished
from envlock.data.images import image_table
from envlock.runtime.collectors import Snapshot
from envlock.runtime.errors import OutsideError
from envlock.runtime.policy import matches
from envlock.runtime.report import FILE_RULE, INFO, Finding, Report, clean, ranked
from envlock.runtime.verify import judge

Run = Callable[[list[str]], Finished]
"""Runs the image's entrypoint with these arguments."""


@dataclass(frozen=True)
class Verdict:
    """The two halves of a report: what the image can answer for, and what only the machine under it can."""

    image: Report
    machine: Report


def verify(document: Mapping[str, Any], run: Run, *, installed: bool = True) -> Verdict:
    """Return how the environment inside an image differs from a lock, in its facts and in the bytes of its files.

    What the base had on its own is known by its digest, whatever its RECORDs say: only files that the build has
    installed (none where `installed` is not so) must be as recorded.

    Raises:
        OutsideError: nothing was to be learned from inside.
    """
    facts, unavailable, files = answer(run, ["--deep"])
    report = judge(dict(document), Snapshot(facts, unavailable), sides=("locked", "in the image"))
    theirs = [finding for finding in report.findings if of_machine(finding.where.fact)]
    ours = [finding for finding in report.findings if not of_machine(finding.where.fact)]
    ours = ranked([*ours, *(_file(each, installed=installed) for each in files)])
    image, machine = (
        Report(each, policy=report.policy, overrides=report.overrides) for each in (ours, theirs)
    )
    return Verdict(image, machine)


def _file(told: Mapping[str, Any], *, installed: bool) -> Finding:
    """Return what an image says of a file; a path in the folder of its own packages is relative to that."""
    fields = {**told, "where": str(told["where"]["fact"])}
    finding = Finding(fields.pop("rule"), fields.pop("severity"), **fields)
    is_of_base = not installed or finding.where.fact.startswith("/")
    if is_of_base and finding.rule != f"{FILE_RULE}not-locked":
        finding.severity = INFO
    return finding


def of_machine(path: str) -> bool:
    """Return whether a fact belongs to the machine that a container runs on, not to its image."""
    return any(matches(row.path, path) for row in image_table().host)


def answer(run: Run, argv: list[str]) -> Any:
    """Return the JSON that the entrypoint prints; the base's own entrypoint may print before it.

    Raises:
        OutsideError: it printed none.
    """
    done = run(argv)
    last = done.stdout.rstrip("\n").rpartition("\n")[2]
    try:
        if done.exit_code == 0:
            return json.loads(last)
    except (ValueError, RecursionError):
        pass
    said = clean((done.stderr or done.stdout).strip().rpartition("\n")[2])[:200]
    raise OutsideError(
        f"the image cannot be verified: its entrypoint ended with exit code {done.exit_code}: {said}",
        hint="run it by hand: `docker run --rm IMAGE true`",
    )


def sentence(verdict: Verdict, name: str) -> str:
    """Return what there is to say of a verdict in one line, for a build that worked."""
    breaking = [finding for finding in verdict.machine.findings if finding.severity != INFO]
    if not breaking:
        return f"{name} was verified inside: it {verdict.image.headline}"
    shown = ", ".join(sorted({finding.where.fact for finding in breaking})[:4])
    return (
        f"{name} was verified inside: it is the locked environment. This machine is not the locked one ({shown}), "
        "so the image refuses to start here"
    )


def differing(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[str]:
    """Return a line for each file that two images do not have alike, by what `--files` prints of them."""
    lines = [f"only in the locked image: {path}" for path in sorted(old.keys() - new.keys())]
    lines += [f"only in the new image: {path}" for path in sorted(new.keys() - old.keys())]
    for path in sorted(old.keys() & new.keys()):
        names = ("mode", "owner", "group", "content")
        parts = [
            name
            for name, left, right in zip(names, old[path], new[path], strict=True)
            if left != right
        ]
        lines += [f"different {' and '.join(parts)}: {path}"] if parts else []
    return [clean(line) for line in lines]
