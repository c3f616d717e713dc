"""`envlock images` for people: tables of plain columns, so that they read alike in a terminal, a pipe and a log."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from textwrap import wrap
from typing import Any

from envlock.reports.text import paint
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
WIDTH = 100
FEW = 4
"""So many images are named each."""
Lines = Iterable[tuple[str, str]]


def render_ranking(document: Mapping[str, Any], *, limit: int, color: bool = False) -> str:
    """Return the base images for a lock: a table of all of them, then the reasons of the first `limit`."""
    return paint(_list_ranking(document, limit), color=color)


def render_everything(document: Mapping[str, Any], *, color: bool = False) -> str:
    """Return every image that is known."""
    return paint(_list_everything(document), color=color)


def render_answers(document: Mapping[str, Any], *, every: bool = False, color: bool = False) -> str:
    """Return what runs on a GPU: each reason once, with what it is true of; `every` image, or the newest and oldest."""
    return paint(_answers(document, every), color=color)


ANSWERS = {
    "yes": "Runs, by machine code:",
    "driver": "Runs where the driver can compile its PTX, which takes minutes at the first start:",
    "unknown": "Unknown:",
    "no": "Not to be expected to run:",
}


def _answers(document: Mapping[str, Any], every: bool) -> Lines:
    gpu = document["gpu"]
    cards = f" ({', '.join(gpu['cards'])})" if gpu["cards"] else ""
    yield from _wrapped(
        "title", f"GPUs of compute capability {clean(gpu['compute_capability'])}{cards}", ""
    )
    for runs, title in ANSWERS.items():
        reasons: dict[str, list[Mapping[str, Any]]] = {}
        for row in document["answers"]:
            if row["runs"] == runs:
                reasons.setdefault(row["why"], []).append(row)
        if reasons:
            yield "plain", ""
            yield "title", title
        for why, rows in reasons.items():
            yield from _wrapped("plain", _answer(rows, every), "  ")
            yield from _wrapped("note", why, "    ")


def _answer(rows: Sequence[Mapping[str, Any]], every: bool) -> str:
    """Return images and wheels in words."""
    images = [row["name"] for row in rows if row["kind"] == "image"]
    wheels = [row["name"].split()[1] for row in rows if row["kind"] == "wheel"]
    if len(images) > FEW and not every:
        images = [
            f"{images[0]} to {images[-1].rpartition(':')[2]} ({len(images)} images; `--all` names each)"
        ]
    return ", ".join([*images, *([f"wheels of TensorFlow {', '.join(wheels)}"] if wheels else [])])


def _wrapped(style: str, text: str, indent: str) -> Lines:
    for line in wrap(
        clean(text), WIDTH - len(indent), break_long_words=False, break_on_hyphens=False
    ):
        yield style, f"{indent}{line}"


def _list_ranking(document: Mapping[str, Any], limit: int) -> Lines:
    wanted, candidates = document["wanted"], document["candidates"]
    names = [name for name in COLUMNS if wanted[name] is not None]
    yield (
        "plain",
        f"locked: {_describe_wanted(wanted, names)}, {wanted['platform']}; base images, the best first:",
    )
    yield "plain", ""
    shown = candidates[:limit]
    rows = [
        [str(n), row["route"], row["image"], *_fill_cells(row, names)]
        for n, row in enumerate(shown, 1)
    ]
    table = list(_align(["", "route", "image", *(COLUMNS[name] for name in names)], rows))
    yield "title", table[0]
    for row, line in zip(shown, table[1:], strict=True):
        style = "note"
        if row["usable"]:
            style = "plain"
        yield style, line
    for number, row in enumerate(shown, 1):
        yield "plain", ""
        yield from _explain_candidate(number, row)
    yield from _list_legend(shown, len(candidates) - len(shown))


def _describe_wanted(wanted: Mapping[str, Any], names: Iterable[str]) -> str:
    """Return the locked versions in one line, TensorFlow's with the build it is, such as `+nv25.02`."""
    parts = []
    for name in names:
        part = f"{COLUMNS[name]} {clean(wanted[name])}"
        if name == "tensorflow" and wanted["label"]:
            part += f"+{wanted['label']}"
        parts.append(part)
    return ", ".join(parts) or "no TensorFlow"


def _explain_candidate(number: int, row: Mapping[str, Any]) -> Lines:
    yield "title", f"{number}  {row['image']}{_judge_candidate(row)}"
    if row["digest"] is not None:
        yield "plain", f"   pinned: {row['digest']}"
    python = row["python_from"]
    if not python and row["python_archive"]:
        python = row["python_archive"]["file"]
    if python is not None:
        yield "plain", f"   python from: {python}"
    for line in wrap(
        clean(row["reason"]), WIDTH - 3, break_long_words=False, break_on_hyphens=False
    ):
        yield "plain", f"   {line}"


def _judge_candidate(row: Mapping[str, Any]) -> str:
    if row["usable"]:
        return ""
    if row["mismatches"]:
        return " (cannot match)"
    return " (not usable)"


def _list_legend(shown: Sequence[Mapping[str, Any]], more: int) -> Lines:
    yield "plain", ""
    if any(value["expected"] for row in shown for value in row["holds"].values()):
        yield "note", "~ expected by other images of that month; `--resolve` asks the registry"
    if more:
        yield "note", f"{more} more with `--all`"


def _list_everything(document: Mapping[str, Any]) -> Lines:
    yield "plain", "NVIDIA's TensorFlow images; ~ expected by other images of that month, - unknown"
    yield "plain", ""
    releases = [[row["image"], *_fill_cells(row, list(COLUMNS))] for row in document["releases"]]
    yield from _list_table(["image", *COLUMNS.values()], releases)
    yield from _list_title("NVIDIA's CUDA images")
    libraries = [[row["image"], *_fill_cells(row, ["cudnn", "nccl"])] for row in document["cuda"]]
    yield from _list_table(["image", "cuDNN", "NCCL"], libraries)
    yield from _list_title("Python's slim images")
    patches = [[row["image"], "{} to {}".format(*row["patches"])] for row in document["python"]]
    yield from _list_table(["image", "patch releases"], patches)
    yield from _list_systems(document["systems"])


def _list_title(title: str) -> Lines:
    yield "plain", ""
    yield "plain", title
    yield "plain", ""


def _list_systems(rows: Iterable[Mapping[str, Any]]) -> Lines:
    """Yield the systems that are known, and which images have their own Python."""
    yield from _list_title("Systems, for a Python that is copied or installed")
    cells = [
        [row["image"], row["libc"], row["with_python"] or "-", row["python"] or "-"] for row in rows
    ]
    yield from _list_table(["image", "glibc", "with its own Python", "Python"], cells)


def _fill_cells(row: Mapping[str, Any], names: Iterable[str]) -> list[str]:
    """Return the versions that an image holds: `-` for an unknown one, with `~` for one that was never read there."""
    cells = []
    for name in names:
        value = row["holds"].get(name)
        cell = "-"
        if value is not None:
            cell = value["version"]
            if value["expected"]:
                cell = f"~{cell}"
        cells.append(cell)
    return cells


def _align(head: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterable[str]:
    lines = [head, *([clean(cell) for cell in row] for row in rows)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(head))]
    for line in lines:
        yield "  ".join(
            cell.ljust(width) for cell, width in zip(line, widths, strict=True)
        ).rstrip()


def _list_table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> Lines:
    title, *lines = _align(head, rows)
    yield "title", title
    for line in lines:
        yield "plain", line
