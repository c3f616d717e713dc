"""The output of `envlock images` as text: tables of plain columns, the same in a terminal, a pipe
and a log.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from textwrap import wrap
from typing import Any

from envlock.runtime.report import clean

COLUMNS = {
    "tensorflow": "TensorFlow",
    "python": "Python",
    "cuda": "CUDA",
    "cudnn": "cuDNN",
    "nccl": "NCCL",
    "os": "system",
    "libc": "glibc",
}
WIDTH = 100  # columns
FEW = 4
"""If there are more images than this, only the first and the last are named."""
Lines = Iterable[tuple[str, str]]
Row = Mapping[str, Any]
"""JSON values of envlock/image/bases/listing.py or cards.py; docs/reference/images.md has their keys."""


ANSWERS = {
    "yes": "Runs, by machine code:",
    "driver": "Runs where the driver can compile its PTX, which takes minutes at the first start:",
    "unknown": "Unknown:",
    "no": "Not to be expected to run:",
}


def list_answers(document: Row) -> Lines:
    """Yield what runs on a GPU, each reason once."""
    gpu, driver = document["gpu"], document["driver"]
    answers: Sequence[Row] = document["answers"]
    title = (
        "GPUs" if gpu is None else f"GPUs of compute capability {clean(gpu['compute_capability'])}"
    )
    if gpu is not None and gpu["cards"]:
        title += f" ({', '.join(gpu['cards'])})"
    if driver is not None:
        title += f" with driver {driver['version']}"
        if driver["newest_cuda"] is not None:
            title += f", of CUDA {driver['newest_cuda']}"
    yield from _wrap("title", title, "")
    for runs, heading in ANSWERS.items():
        reasons: dict[str, list[Row]] = {}
        for answer in answers:
            if answer["runs"] == runs:
                reasons.setdefault(answer["why"], []).append(answer)
        if reasons:
            yield "plain", ""
            yield "title", "Runs:" if gpu is None and runs == "yes" else heading
        for why, group in reasons.items():
            yield from _wrap("plain", _join_names(group), "  ")
            yield from _wrap("note", why, "    ")


def _join_names(answers: Sequence[Row]) -> str:
    """Return the names of images and wheels as a phrase."""
    names = [answer["name"] for answer in answers if answer["kind"] == "image"]
    wheels = [answer["name"].split()[1] for answer in answers if answer["kind"] == "wheel"]
    if len(names) > FEW:
        last = names[-1].rpartition(":")[2]
        names = [f"{names[0]} to {last} ({len(names)} images; `--format json` names each)"]
    if wheels:
        names.append(f"wheels of TensorFlow {', '.join(wheels)}")
    return ", ".join(names)


def _wrap(style: str, text: str, indent: str) -> Lines:
    width = WIDTH - len(indent)
    for line in wrap(clean(text), width, break_long_words=False, break_on_hyphens=False):
        yield style, f"{indent}{line}"


def list_ranking(document: Row, limit: int) -> Lines:
    """Yield the first `limit` base images for a lockfile: a table, then the reasons for each."""
    wanted: Mapping[str, str | None] = document["wanted"]
    candidates: Sequence[Row] = document["candidates"]
    names = [name for name in COLUMNS if wanted[name] is not None]
    locked = f"{_describe_wanted(wanted, names)}, {wanted['platform']}"
    yield "plain", f"locked: {locked}; base images, the best first:"
    yield "plain", ""
    shown = candidates[:limit]
    rows = []
    for number, candidate in enumerate(shown, 1):
        row = [str(number), candidate["route"], candidate["image"]]
        rows.append([*row, *_fill_cells(candidate, names)])
    head, *lines = _align(["", "route", "image", *map(COLUMNS.__getitem__, names)], rows)
    yield "title", head
    for candidate, line in zip(shown, lines, strict=True):
        style = "plain" if candidate["usable"] else "note"
        yield style, line
    for number, candidate in enumerate(shown, 1):
        yield "plain", ""
        yield from _explain_candidate(number, candidate)
    yield from _list_legend(shown, len(candidates) - len(shown))


def _describe_wanted(wanted: Mapping[str, str | None], names: Iterable[str]) -> str:
    """Return the locked versions in one line, that of TensorFlow with its build, such as
    `+nv25.02`.
    """
    parts = []
    for name in names:
        part = f"{COLUMNS[name]} {clean(wanted[name] or '')}"
        if name == "tensorflow" and wanted["label"]:
            part += f"+{wanted['label']}"
        parts.append(part)
    return ", ".join(parts) or "no TensorFlow"


def _explain_candidate(number: int, row: Row) -> Lines:
    yield "title", f"{number}  {row['image']}{_judge_candidate(row)}"
    python = row["python_from"]
    if not python and row["python_archive"]:
        python = row["python_archive"]["file"]
    if python is not None:
        yield "plain", f"   python from: {python}"
    yield from _wrap("plain", row["reason"], "   ")


def _judge_candidate(row: Row) -> str:
    if row["usable"]:
        return ""
    if row["mismatches"]:
        return " (cannot match)"
    return " (not usable)"


def _list_legend(shown: Sequence[Row], more: int) -> Lines:
    yield "plain", ""
    for candidate in shown:
        if any(holding["expected"] for holding in candidate["holds"].values()):
            yield "note", "~ expected by other images of that month"
            break
    if more:
        yield "note", f"{more} more with `--format json`"


def _fill_cells(image: Row, names: Iterable[str]) -> list[str]:
    """Return the versions in an image: `-` for an unknown one, `~` before one that was inferred."""
    cells = []
    for name in names:
        holding = image["holds"].get(name)
        cell = "-"
        if holding is not None:
            cell = f"~{holding['version']}" if holding["expected"] else holding["version"]
        cells.append(cell)
    return cells


def _align(head: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterable[str]:
    table = [list(head)]
    table += [list(map(clean, row)) for row in rows]
    widths = [0] * len(head)
    for row in table:
        for column, cell in enumerate(row):
            widths[column] = max(widths[column], len(cell))
    for row in table:
        yield "  ".join(map(str.ljust, row, widths)).rstrip()
