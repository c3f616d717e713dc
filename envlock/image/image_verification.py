"""Whether an image is the locked environment: its own Python collects the facts, and they are
compared here.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from envlock.data.image_tables import load_image_defaults
from envlock.image.engines.container_run import Finished
from envlock.runtime.collectors import Snapshot
from envlock.runtime.errors import OutsideError
from envlock.runtime.facts import matches
from envlock.runtime.judgement import LOADED, judge
from envlock.runtime.report import FILE_RULE, INFO, Finding, Report, clean, sort_findings

Run = Callable[[list[str]], Finished]
"""Runs the image's entrypoint with these arguments."""


@dataclass(frozen=True)
class Verdict:
    """The two halves of a report, on the image and on the machine that it runs on; and the packages
    that cannot be imported in the image, with the libraries that are missing.
    """

    image: Report
    machine: Report
    unloadable: Mapping[str, Sequence[str]]


def verify(
    document: Mapping[str, Any],
    run: Run,
    *,
    installed: bool = True,
    deep: bool = True,
    imported: bool = False,
) -> Verdict:
    """Return how the environment in an image differs from a lockfile, in facts and files.

    Args:
        document: the lockfile.
        run: runs the image.
        installed: whether the build has installed packages. Only their files must be as recorded:
            those of the base are identified by its digest, whatever its RECORDs say.
        deep: read the files as well; those of an image that was verified before cannot change.
        imported: whether what the import of what computes loads was compared before, in an image
            with the same base and packages.

    Raises:
        OutsideError: the image gave no answer.
    """
    files = []
    if deep:
        facts, unavailable, unloadable, files = ask_entrypoint(run, ["--deep"])
    else:
        facts, unavailable, unloadable = ask_entrypoint(run, ["--facts"])
    report = judge(dict(document), Snapshot(facts, unavailable), sides=("locked", "in the image"))
    found = list(report.findings)
    if not imported and LOADED in document["facts"]:
        found += [_parse_finding(entry) for entry in ask_entrypoint(run, ["--loaded"])]
    of_machine = [finding for finding in found if is_of_machine(finding.where.fact)]
    of_image = [finding for finding in found if not is_of_machine(finding.where.fact)]
    of_image += [_parse_file(entry, installed=installed) for entry in files]
    image, machine = (
        Report(
            sort_findings(half),
            policy=report.policy,
            overrides=report.overrides,
            exempt=report.exempt,
            extent=report.extent,
        )
        for half in (of_image, of_machine)
    )
    return Verdict(image, machine, unloadable)


def _parse_finding(entry: Mapping[str, Any]) -> Finding:
    """Return a finding of an image."""
    fields = {**entry, "where": str(entry["where"]["fact"])}
    return Finding(fields.pop("rule"), fields.pop("severity"), **fields)


def _parse_file(entry: Mapping[str, Any], *, installed: bool) -> Finding:
    """Return the finding of an image about a file.

    A path in the folder of the packages that the build has installed is relative to that.
    """
    finding = _parse_finding(entry)
    is_of_base = not installed or finding.where.fact.startswith("/")
    if is_of_base and finding.rule != f"{FILE_RULE}not-locked":
        finding.severity = INFO
    return finding


def is_of_machine(path: str) -> bool:
    """Return whether a fact belongs to the machine that a container runs on, rather than to its
    image.
    """
    return any(matches(row.path, path) for row in load_image_defaults().host)


def ask_entrypoint(run: Run, argv: list[str]) -> Any:
    """Return the JSON that an image's entrypoint prints with these arguments.

    Raises:
        OutsideError: it printed none.
    """
    done = run(argv)
    # The base's own entrypoint may print before ours.
    last_line = done.stdout.rstrip("\n").rpartition("\n")[2]
    try:
        if done.exit_code == 0:
            return json.loads(last_line)
    except (ValueError, RecursionError):
        pass
    error = clean((done.stderr or done.stdout).strip().rpartition("\n")[2])[:200]
    raise OutsideError(
        "the image cannot be verified: "
        f"its entrypoint ended with exit code {done.exit_code}: {error}",
        hint="start the image by hand with the program `true`: its entrypoint says what it lacks",
    )


def describe_verdict(verdict: Verdict, name: str) -> str:
    """Return a verdict in one line, for a build that succeeded."""
    facts = set()
    for finding in verdict.machine.findings:
        if finding.severity != INFO:
            facts.add(finding.where.fact)
    if not facts:
        return f"{name} was verified inside: it {verdict.image.headline}"
    return (
        f"{name} was verified inside: it is the locked environment. "
        f"This machine is not the locked one ({', '.join(sorted(facts)[:4])}), "
        "so the image refuses to start here"
    )


def list_differences(
    old: Mapping[str, Sequence[object]], new: Mapping[str, Sequence[object]]
) -> list[str]:
    """Return a line for each file that differs between two images, from the output of `--files`."""
    lines = [f"only in the locked image: {path}" for path in sorted(old.keys() - new.keys())]
    lines += [f"only in the new image: {path}" for path in sorted(new.keys() - old.keys())]
    for path in sorted(old.keys() & new.keys()):
        parts = []
        for position, name in enumerate(("mode", "owner", "group", "content")):
            if old[path][position] != new[path][position]:
                parts.append(name)
        if parts:
            lines.append(f"different {' and '.join(parts)}: {path}")
    return [clean(line) for line in lines]
