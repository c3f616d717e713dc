"""Ask `envlock diverge` about every program of its zoos, and print a table.

python tools/diverge_zoo.py PYTHON [--runs 4] [NAME...]
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
import tempfile
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from envlock.runtime.errors import EnvlockError
from envlock.runtime.report import Report
from tests.evidence.diverge.animals import (
    ANIMALS,
    CLEAN_IN_THREADS,
    FRESH,
    FRESH_CLEAN,
    IN_THREADS,
    KERAS_2,
    KERAS_3,
    THREAD_ZOO,
    TRAININGS_KERAS_2,
    TRAININGS_KERAS_3,
    ZOO,
    Animal,
)
from tests.evidence.diverge.zookeeper import keeper

CLEAN = (
    *(Animal(name, "identical", zoo=ZOO) for name in ("clean", "clean_fit")),
    *(Animal(name, "identical", zoo=THREAD_ZOO) for name in CLEAN_IN_THREADS),
    *FRESH_CLEAN,
)
CAUSES = (*ANIMALS, *IN_THREADS, *FRESH)


def known(
    names: Collection[str], animals: Sequence[Animal] = (*CAUSES, *CLEAN)
) -> list[list[Animal]]:
    """Return the programs of these names by the file that they are in; all, where there are no names."""
    wanted = [each for each in animals if each.name in names or not names]
    return [
        [each for each in wanted if each.zoo == zoo]
        for zoo in dict.fromkeys(each.zoo for each in wanted)
    ]


def visited(
    python: Path, animals: Sequence[Animal], runs: int
) -> Iterator[tuple[Animal, str, Mapping[str, Any]]]:
    """Ask about programs of one file, in processes that stay.

    Yields each program, a mark (`right`: kind and line; `kind`; `WRONG`) and what the report says.
    """
    with tempfile.TemporaryDirectory() as folder, keeper(python, Path(folder)) as keeping:
        for animal in animals:
            try:
                report = keeping.ask(animal.name, runs=runs, zoo=animal.zoo, fresh=animal.fresh)
            except (EnvlockError, AssertionError) as error:
                yield animal, "WRONG", {"verdict": f"failed: {' '.join(str(error).split())[-300:]}"}
                continue
            yield animal, _mark(animal, report), report.attachments


def _mark(animal: Animal, report: Report) -> str:
    if animal.verdict == "identical":
        return "right" if report.match else "WRONG"
    return "right" if animal.is_right(report) else "kind" if animal.has_kind(report) else "WRONG"


def main() -> None:
    """Print a line a program, and how many are right."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("python", type=Path)
    parser.add_argument("--runs", type=int, default=4)
    parser.add_argument("names", nargs="*")
    asked = parser.parse_intermixed_args()
    for title, animals in (("with a cause", [*CAUSES, *_of_keras(asked.python)]), ("clean", CLEAN)):
        marks = []
        for group in known(asked.names, animals):
            for animal, mark, seen in visited(asked.python, group, asked.runs):
                marks.append(mark)
                place = f"line {seen['place']['line']}" if seen.get("place") else "no line"
                said = f"{seen['verdict']}: {seen.get('culprit')}, {place}"
                print(f"| {animal.name} | {animal.verdict} | {said} | {mark} |", flush=True)
        kinds, right = (
            sum(mark != "WRONG" for mark in marks),
            sum(mark == "right" for mark in marks),
        )
        print(f"{title}: kind right in {kinds}, line, too, in {right} of {len(marks)}", flush=True)
    spent = resource.getrusage(resource.RUSAGE_CHILDREN)
    print(f"processor time: {spent.ru_utime + spent.ru_stime:.0f} s")


def _of_keras(python: Path) -> tuple[Animal, ...]:
    """Return the programs whose right answer depends on the major version of Keras."""
    code = "import keras; print(keras.__version__)"  # of keras-nightly, too, under which candidates come
    command = [str(python), "-c", code]
    found = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return (
        (*KERAS_2, *TRAININGS_KERAS_2) if found.startswith("2") else (*KERAS_3, *TRAININGS_KERAS_3)
    )


if __name__ == "__main__":
    main()
