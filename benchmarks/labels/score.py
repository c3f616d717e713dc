"""Count how many labels of a round `envlock lint` names.

    python benchmarks/labels/score.py benchmarks/labels/round32.tsv FOLDER [--tf VERSION]

FOLDER holds each repository under `owner+name`, at the commit that README.md gives. A label counts where
a finding lies on its lines or lists its line; Keras weights count where one finding of their repository
says that nothing seeds them. What has the same cause on another line is for the reader to judge.
"""

import argparse
import collections
import csv
import json
import pathlib
import re
import subprocess
import sys

MORE_LINES = re.compile(r"more \(lines? ([\d, ]+)")
MORE_CELLS = re.compile(r"more \((cell [^)]+)\)")
CELL = re.compile(r"^cell (\d+): ")
NOT_A_CAUSE = ("ENV108", "ENV109")


def lint_repository(folder: pathlib.Path, version: str) -> list[dict[str, object]]:
    """Return the findings of one repository as the report gives them."""
    command = [sys.executable, "-m", "envlock", "lint", ".", "--tf", version, "-f", "json"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    return list(json.loads(done.stdout)["findings"])


def list_lines(finding: dict[str, object]) -> set[int]:
    """Return the lines that a finding lies on or lists."""
    where = finding["where"]
    assert isinstance(where, dict)
    first = int(where["line"])
    lines = set(range(first - 2, int(where.get("end_line", first)) + 2))
    listed = MORE_LINES.search(str(finding["message"]))
    if listed:
        for number in re.findall(r"\d+", listed.group(1)):
            lines.update(range(int(number) - 1, int(number) + 2))
    return lines


def list_cell_lines(finding: dict[str, object], notebook: pathlib.Path) -> set[int]:
    """Return the lines of a notebook's file that a finding lies on or lists; its own lines count in a cell."""
    where = finding["where"]
    assert isinstance(where, dict)
    message = str(finding["message"])
    cell = CELL.match(message)
    if cell is None:
        return set()
    places = {(int(cell.group(1)), int(where["line"]))}
    listed = MORE_CELLS.search(message)
    if listed:
        for part in listed.group(1).split("; "):
            number, lines = part.removeprefix("cell ").split(": ")
            places.update((int(number), int(line)) for line in lines.split(", "))
    text = notebook.read_text(encoding="utf-8")
    starts = locate_sources(text)
    return {starts[number - 1] + line - 1 for number, line in places}


def locate_sources(text: str) -> list[int]:
    """Return the line of the file at which the first line of each cell's source stands."""
    starts: list[int] = []
    for number, line in enumerate(text.splitlines(), start=1):
        if line.strip().startswith('"source": ['):
            starts.append(number + 1)
    return starts


def is_named(
    label: dict[str, str], findings: list[dict[str, object]], folder: pathlib.Path
) -> bool:
    """Say whether one of the findings names the label."""
    for finding in findings:
        if finding["rule"] in NOT_A_CAUSE:
            continue
        where = finding["where"]
        assert isinstance(where, dict)
        if where.get("file") == label["file"]:
            lines = list_lines(finding)
            if label["file"].endswith(".ipynb"):
                lines = list_cell_lines(finding, folder / label["file"])
            if int(label["line"]) in lines:
                return True
        if label["class"].startswith("keras") and finding["rule"] == "ENV202":
            return True
    return False


def main() -> None:
    """Print the labels that are not named, then the counts of each class."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("labels", type=pathlib.Path)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--tf", default="2.21")
    given = parser.parse_args()
    with given.labels.open(newline="", encoding="utf-8") as file:
        labels = list(csv.DictReader(file, delimiter="\t"))
    findings = {}
    named: collections.Counter[str] = collections.Counter()
    counted: collections.Counter[str] = collections.Counter()
    for label in labels:
        repository = label["repository"]
        folder = given.folder / repository.replace("/", "+")
        if repository not in findings:
            findings[repository] = lint_repository(folder, given.tf)
        if label["part"] != "code":
            continue
        counted[label["class"]] += 1
        if is_named(label, findings[repository], folder):
            named[label["class"]] += 1
        else:
            print("not named:", repository, f"{label['file']}:{label['line']}", label["why"])
    for kind, count in counted.most_common():
        print(f"{kind}: {named[kind]} of {count}")
    print(f"all: {named.total()} of {counted.total()}")


if __name__ == "__main__":
    main()
