"""Put what `make testgpu` measured into determinism_sources.toml: python tools/gpu_rows.py RESULT... [--table FILE]

Each row that a case of experiments 1 to 4 speaks of gets a line `measured`: on which GPU, driver and TensorFlow, how
many results without op determinism and with it, or the error. Lines of other GPUs and versions are kept. A result of a
stand-in changes only a table that is named with `--table`. Afterwards: `make generate`.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

sys.path[:0] = [str(Path(__file__).resolve().parents[1]), str(Path(__file__).resolve().parent)]

import tomlkit  # noqa: E402
from gpu_result import CaseResult, Result  # noqa: E402
from pydantic import ValidationError  # noqa: E402

TABLE = Path(__file__).resolve().parents[1] / "envlock" / "data" / "determinism_sources.toml"
EXPERIMENTS = (1, 2, 3, 4)
"""Those whose cases compare a row with op determinism off and on."""

Row = dict[str, str]


def rows(result: Result) -> dict[str, Row]:
    """Return the row of the tables -> what was measured for it, in words."""
    cases: dict[str, list[CaseResult]] = {}
    for experiment in result.experiments:
        for case in experiment.cases if experiment.number in EXPERIMENTS else ():
            for row in case.rows:
                cases.setdefault(row, []).append(case)
    where = {
        "on": _machine(result),
        "tensorflow": result.machine.tensorflow,
        "date": result.date,
    }
    found = {}
    for row, those in cases.items():
        off = [each for each in those if not each.determinism and not each.environ]
        on = [each for each in those if each.determinism]
        found[row] = {**where, "off": _said(off), "deterministic": _said(on)}
    return found


def _machine(result: Result) -> str:
    gpus = sorted(set(result.machine.gpus))
    if result.stand_in:
        return f"the CPU in place of a GPU ({result.machine.processor})"
    count = f"{len(result.machine.gpus)} x " if len(result.machine.gpus) > 1 else ""
    return f"{count}{', '.join(gpus)}, driver {result.machine.driver}, cuDNN {result.machine.cudnn}"


def _said(cases: Iterable[CaseResult]) -> str:
    """Return how many results came of how many calls, or the error."""
    said = []
    for case in cases:
        said += ["raises " + " ".join(error.split())[:160] for error in case.errors]
        if case.digests:
            count, calls = len(case.digests), sum(case.digests.values())
            processes = f" in {case.processes} processes" if case.processes > 1 else ""
            said.append(
                f"{count} {'result' if count == 1 else 'results'} in {calls} calls{processes}"
            )
    return "; ".join(dict.fromkeys(said)) or "not run"


def broken(result: Result) -> list[str]:
    """Return the promises of the tables that did not hold: no error where one is promised, or several results.

    A stand-in breaks none: they are about GPUs.
    """
    found = []
    for experiment in () if result.stand_in else result.experiments:
        for case in experiment.cases if experiment.number in (1, 2) else ():
            if not case.determinism:
                continue
            if experiment.number == 1 and not case.errors:
                found.append(f"{case.rows[0]}: no error under op determinism ({_said([case])})")
            if experiment.number == 2 and (case.errors or len(case.digests) > 1):
                found.append(f"{case.rows[0]}: not equal under op determinism ({_said([case])})")
    return found


def enter(text: str, measured: dict[str, Row]) -> str:
    """Return the table with the measurements in it; one on the same machine and version replaces the older one."""
    document: Any = tomlkit.parse(text)
    unknown = measured.keys() - {str(each["id"]) for each in document["source"]}
    if unknown:
        sys.exit(f"error: the table has no row {', '.join(sorted(unknown))}")
    for source in document["source"]:
        new = measured.get(str(source["id"]))
        if new is None:
            continue
        old = [dict(each) for each in source.get("measured", [])]
        kept = [
            each
            for each in old
            if (each["on"], each["tensorflow"]) != (new["on"], new["tensorflow"])
        ]
        lines = tomlkit.array()
        for each in [*kept, new]:
            line = tomlkit.inline_table()
            line.update(each)
            lines.add_line(line, indent="  ")
        lines.add_line(indent="")
        source["measured"] = lines
    return (
        re.sub(
            r"\n(measured = \[(?:\n  .*)*\n\])\n*", r"\n\1\n\n", tomlkit.dumps(document)
        ).rstrip()
        + "\n"
    )


def main() -> None:
    """Enter the results, and say how many rows they speak of."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("results", nargs="+", type=Path)
    parser.add_argument("--table", type=Path, default=TABLE)
    asked = parser.parse_args()
    text = asked.table.read_text(encoding="utf-8")
    for file in asked.results:
        try:
            result = Result.model_validate(json.loads(file.read_bytes()))
        except (ValueError, ValidationError) as error:
            sys.exit(
                f"error: {file} is not a result of `make testgpu`: {str(error).splitlines()[0]}"
            )
        if result.stand_in and asked.table == TABLE:
            sys.exit(
                f"error: {file} was measured on a CPU in place of a GPU: it says nothing of one"
            )
        measured = rows(result)
        text = enter(text, measured)
        print(f"{file}: {len(measured)} rows, measured on {_machine(result)}")
        for promise in broken(result):
            print(f"  a promise of the table that did not hold: {promise}")
    asked.table.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
