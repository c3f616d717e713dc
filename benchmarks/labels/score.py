"""Count how many labels `envlock lint` names, and how many of its findings lie at no label.

    python benchmarks/labels/score.py FOLDER ROUND... [--tf VERSION] [--with NAME=COMMAND] [--misses NAME]

FOLDER holds each repository under `owner+name`, at the commit that README.md gives; a round is a
number such as 32 or a range such as 32-45, or a file of labels. The linter of this checkout is scored
beside the direct baseline of baseline.py, and beside each `--with NAME=COMMAND`: a command that takes
a folder's `.` and prints a report as JSON, such as an older envlock.

What counts, strictly:

* A label of `code` is named if a finding lies on its line (within the call, if that is at most 20
  lines long) or lists it. Initial weights count per program, as do dropout and shuffles of Keras:
  where a finding that says that nothing seeds them (ENV201, ENV202, for weights also ENV204) lies in
  the same file, or in one of which either imports the other.
* The missing switch (ENV108) names labels of operations on a GPU alone; that a program cannot run
  names nothing.
* Recall is printed once over all findings, and once over what is shown first: what is not set apart
  as tests, as code that nothing calls, or as numbers only.
* A finding that is shown first is wrong (a proxy, as no reader has judged it) if none of its
  lines is at a label of any part. What cannot run, and settings of the linter itself, are left out.
"""

from __future__ import annotations

import argparse
import collections
import csv
import json
import pathlib
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

sys.path.insert(0, str(pathlib.Path(__file__).parent))

import baseline

HERE = pathlib.Path(__file__).parent
MORE = re.compile(r"more \(([^)]*)\)")
LISTED = re.compile(r"(?:(.*): |lines? )?([\d, ]+)")
CELL_LINES = re.compile(r"cell (\d+): ([\d, ]+)")
CELL = re.compile(r"^cell (\d+): ")
NOT_A_SOURCE = ("ENV0", "ENV101", "ENV102", "ENV109", "ENV111", "ENV112")
OF_WEIGHTS = ("ENV201", "ENV202", "ENV204")
SWITCH = "ENV108"
LONG_CALL = 20
FAMILIES = {
    "weights": ("weights", "dropout", "keras_shuffle", "keras_random"),
    "numpy and python": ("numpy", "python", "sklearn"),
    "tensorflow": ("tf", "tf_random", "tf_generator", "stochastic"),
    "dataset order": ("dataset", "tfdata", "interleave", "parallel_map"),
    "listing": ("listing", "glob"),
    "threads": ("thread", "race", "queue", "process", "worker", "polling"),
    "gpu": ("gpu",),
    "clock": ("clock", "uuid"),
    "environment": ("env", "gym"),
    "set": ("set", "hash"),
}


@dataclass(frozen=True)
class Found:
    """A finding: its rule, its file, its lines, those in other files, and whether it is shown first."""

    rule: str
    file: str
    lines: frozenset[int]
    first: bool
    elsewhere: frozenset[tuple[str, int]] = frozenset()

    def stands(self, file: str, lines: set[int]) -> bool:
        """Say whether it lies on one of some lines of a file, or lists it."""
        if file == self.file and not lines.isdisjoint(self.lines):
            return True
        return any((file, line) in self.elsewhere for line in lines)


@dataclass
class Count:
    """What one linter reached: labels named at all and by what is shown first, and the wrong ones."""

    labels: collections.Counter[str] = field(default_factory=collections.Counter)
    named: collections.Counter[str] = field(default_factory=collections.Counter)
    named_first: collections.Counter[str] = field(default_factory=collections.Counter)
    first: collections.Counter[str] = field(default_factory=collections.Counter)
    wrong: collections.Counter[str] = field(default_factory=collections.Counter)
    first_lines: int = 0
    wrong_lines: int = 0
    later: int = 0
    misses: list[str] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)


def run_command(command: str, folder: pathlib.Path, version: str) -> list[Found]:
    """Return the findings that a command's JSON report gives for a folder."""
    words = [*shlex.split(command), ".", "--tf", version, "-f", "json"]
    done = subprocess.run(words, cwd=folder, capture_output=True, text=True, check=False)
    if not done.stdout.startswith("{"):
        raise ValueError(f"{folder.name}: {done.stderr[-300:]}")
    return [read_finding(each, folder) for each in json.loads(done.stdout)["findings"]]


def read_finding(finding: dict[str, object], folder: pathlib.Path) -> Found:
    """Return a finding of a JSON report."""
    where = finding["where"]
    assert isinstance(where, dict)
    message = str(finding["message"])
    file = where.get("file", "")
    elsewhere: set[tuple[str, int]] = set()
    listed = [part for more in MORE.findall(message) for part in more.split("; ")]
    if file.endswith(".ipynb") and CELL.match(message):
        lines = list_cell_lines(message, where, listed, folder / file)
    else:
        start = int(where["line"])
        end = int(where.get("end_line", start))
        lines = set(range(start, end + 1)) if end - start <= LONG_CALL else {start}
        for part in listed:
            said = LISTED.fullmatch(part)
            if said is not None and said[1]:
                elsewhere.update((said[1], int(each)) for each in said[2].split(", "))
            elif said is not None:
                lines.update(int(each) for each in said[2].split(", "))
    return Found(
        str(finding["rule"]), file, frozenset(lines), not where.get("part"), frozenset(elsewhere)
    )


def list_cell_lines(
    message: str, where: dict[str, object], listed: list[str], notebook: pathlib.Path
) -> set[int]:
    """Return the lines of a notebook's file at which a finding lies or which it lists."""
    cell = CELL.match(message)
    assert cell is not None
    places = {(int(cell.group(1)), int(str(where["line"])))}
    for part in listed:
        said = CELL_LINES.fullmatch(part)
        if said is not None:
            places.update((int(said[1]), int(line)) for line in said[2].split(", "))
    starts = locate_sources(notebook.read_text(encoding="utf-8"))
    return {starts[number - 1] + line - 1 for number, line in places if number <= len(starts)}


def locate_sources(text: str) -> list[int]:
    """Return the line of the file at which the first line of each cell's source stands."""
    lines = enumerate(text.splitlines(), start=1)
    return [number + 1 for number, line in lines if line.strip().startswith('"source": [')]


def run_baseline(folder: pathlib.Path) -> list[Found]:
    """Return the findings of the baseline, which knows no tests and shows everything first."""
    return [
        Found(rule, file, frozenset(lines), True) for rule, file, lines in baseline.lint(folder)
    ]


def find_family(kind: str) -> str:
    """Return the family that a reader's word for a kind belongs to."""
    for family, words in FAMILIES.items():
        exact = family in ("tensorflow", "environment", "set")
        for word in words:
            if kind == word or (not exact and word in kind):
                return family
    return "other"


class Programs:
    """Which files of a folder import which."""

    def __init__(self, folder: pathlib.Path) -> None:
        self.folder = folder
        self.reach = baseline.find_reach(folder)

    def share(self, one: str, other: str) -> bool:
        """Say whether two files are one, or one imports the other, directly or not."""
        return one == other or other in self.reach.get(one, ()) or one in self.reach.get(other, ())


def list_label_lines(label: dict[str, str], folder: pathlib.Path) -> set[int]:
    """Return the lines of a label; where a reader wrote `cell 18` of a notebook, those of the cell."""
    cell = re.fullmatch(r"cell (\d+)", label["line"])
    if cell is None:
        return {int(label["line"])}
    text = (folder / label["file"]).read_text(encoding="utf-8")
    starts = [*locate_sources(text), text.count("\n")]
    at = int(cell[1]) - 1
    return set(range(starts[at], starts[at + 1])) if at + 1 < len(starts) else set()


def names(finding: Found, label: dict[str, str], programs: Programs) -> bool:
    """Say whether a finding names a label."""
    kind = label["class"]
    if finding.rule.startswith(NOT_A_SOURCE):
        return False
    if finding.rule == SWITCH and "gpu" not in kind:
        return False
    of_weights = "weights" in kind and finding.rule in OF_WEIGHTS
    if of_weights or (kind.startswith("keras") and finding.rule in OF_WEIGHTS[:2]):
        return programs.share(finding.file, label["file"])
    return finding.stands(label["file"], list_label_lines(label, programs.folder))


def score(
    count: Count, labels: list[dict[str, str]], findings: list[Found], programs: Programs
) -> None:
    """Add what the findings in one repository reach."""
    findings = [each for each in findings if not each.rule.startswith(NOT_A_SOURCE)]
    for label in labels:
        if label["part"] != "code":
            continue
        family = find_family(label["class"])
        count.labels[family] += 1
        naming = [each for each in findings if names(each, label, programs)]
        count.named[family] += bool(naming)
        count.named_first[family] += any(each.first for each in naming)
        if not any(each.first for each in naming):
            later = "later" if naming else "missed"
            place = f"{label['repository']} {label['file']}:{label['line']}"
            count.misses.append(f"{later}\t{label['class']}\t{place}\t{label['why']}")
    places = {
        (each["file"], line) for each in labels for line in list_label_lines(each, programs.folder)
    }
    for finding in findings:
        if not finding.first:
            count.later += 1
            continue
        count.first[finding.rule] += 1
        missing = [each for each in finding.lines if (finding.file, each) not in places]
        count.first_lines += len(finding.lines) + len(finding.elsewhere)
        count.wrong_lines += sum((file, line) not in places for file, line in finding.elsewhere)
        count.wrong_lines += len(missing)
        if not any(names(finding, label, programs) for label in labels):
            count.wrong[finding.rule] += 1
            place = f"{labels[0]['repository']} {finding.file}:{min(finding.lines)}"
            count.errors.append(f"{finding.rule}\t{place}\t{sorted(finding.lines)}")


def read_labels(rounds: list[str]) -> dict[str, list[dict[str, str]]]:
    """Return the labels of each repository in the rounds."""
    found: dict[str, list[dict[str, str]]] = collections.defaultdict(list)
    for file in list_files(rounds):
        with file.open(newline="", encoding="utf-8") as stream:
            for label in csv.DictReader(stream, delimiter="\t"):
                found[label["repository"]].append(label)
    return found


def list_files(rounds: list[str]) -> Iterator[pathlib.Path]:
    """Yield the files of labels that the words name."""
    for word in rounds:
        span = re.fullmatch(r"(\d+)(?:-(\d+))?", word)
        if span is None:
            yield pathlib.Path(word)
        else:
            for number in range(int(span[1]), int(span[2] or span[1]) + 1):
                yield HERE / f"round{number}.tsv"


def main() -> None:
    """Print the table, and what one linter misses or shows in vain."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("rounds", nargs="+")
    parser.add_argument("--tf", default="2.21")
    parser.add_argument(
        "--with", action="append", default=[], dest="others", metavar="NAME=COMMAND"
    )
    parser.add_argument("--misses", metavar="NAME", help="list what this linter misses")
    given = parser.parse_args()
    commands = {"envlock": f"{sys.executable} -m envlock lint"}
    commands.update(each.split("=", 1) for each in given.others)
    linters = ["baseline", *commands]
    counts = {name: Count() for name in linters}
    labels = read_labels(given.rounds)

    def look(repository: str) -> tuple[str, Programs, dict[str, list[Found]]]:
        folder = given.folder.resolve() / repository.replace("/", "+")
        found = {"baseline": run_baseline(folder)}
        for name, command in commands.items():
            found[name] = run_command(command, folder, given.tf)
        return repository, Programs(folder), found

    with ThreadPoolExecutor(2) as pool:
        for repository, programs, found in pool.map(look, labels):
            for name in linters:
                score(counts[name], labels[repository], found[name], programs)
    if given.misses:
        print("\n".join([*counts[given.misses].misses, *counts[given.misses].errors]))
    print_table(counts, len(labels))


def print_table(counts: dict[str, Count], repositories: int) -> None:
    """Print what each linter reaches, side by side."""
    total = next(iter(counts.values())).labels.total()
    print(f"{total} labels of code in {repositories} repositories\n")
    print("| | " + " | ".join(counts) + " |")
    print("|---|" + "--:|" * len(counts))

    def share(part: int, whole: int) -> str:
        return f"{part} of {whole} ({100 * part / max(whole, 1):.1f} %)"

    def print_row(title: str, cells: list[str]) -> None:
        print(f"| {title} | " + " | ".join(cells) + " |")

    every = list(counts.values())
    print_row("labels named", [share(each.named.total(), total) for each in every])
    print_row("by what is shown first", [share(each.named_first.total(), total) for each in every])
    print_row(
        "shown first at no label",
        [share(each.wrong.total(), each.first.total()) for each in every],
    )
    print_row("the same by lines", [share(each.wrong_lines, each.first_lines) for each in every])
    print_row("shown later", [str(each.later) for each in every])
    for family in [*FAMILIES, "other"]:
        whole = every[0].labels[family]
        if whole:
            cells = [
                f"{each.named[family]}, first {each.named_first[family]}, of {whole}"
                for each in every
            ]
            print_row(f"labels: {family}", cells)
    for rule in sorted({rule for each in every for rule in each.first}):
        print_row(
            f"wrong first: {rule}", [share(each.wrong[rule], each.first[rule]) for each in every]
        )


if __name__ == "__main__":
    main()
