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
    return paint(_ranking(document, limit), color=color)


def render_everything(document: Mapping[str, Any], *, color: bool = False) -> str:
    """Return every image that is known."""
    return paint(_everything(document), color=color)


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
    yield from _wrapped("title", f"GPUs of compute capability {clean(gpu['compute_capability'])}{cards}", "")
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
        images = [f"{images[0]} to {images[-1].rpartition(':')[2]} ({len(images)} images; `--all` names each)"]
    return ", ".join([*images, *([f"wheels of TensorFlow {', '.join(wheels)}"] if wheels else [])])


def _wrapped(style: str, text: str, indent: str) -> Lines:
    for line in wrap(clean(text), WIDTH - len(indent), break_long_words=False, break_on_hyphens=False):
        yield style, f"{indent}{line}"


def _ranking(document: Mapping[str, Any], limit: int) -> Lines:
    wanted, candidates = document["wanted"], document["candidates"]
    names = [name for name in COLUMNS if wanted[name] is not None]
    build = f"+{wanted['label']}" if wanted["label"] else ""
    asked = ", ".join(f"{COLUMNS[name]} {clean(wanted[name])}{build if name == 'tensorflow' else ''}" for name in names)
    yield "plain", f"locked: {asked or 'no TensorFlow'}, {wanted['platform']}; base images, the best first:"
    yield "plain", ""
    shown = candidates[:limit]
    rows = [[str(n), row["route"], row["image"], *_cells(row, names)] for n, row in enumerate(shown, 1)]
    table = list(_table(["", "route", "image", *(COLUMNS[name] for name in names)], rows))
    yield "title", table[0]
    for row, line in zip(shown, table[1:], strict=True):
        yield ("plain" if row["usable"] else "note"), line
    for number, row in enumerate(shown, 1):
        yield "plain", ""
        yield "title", f"{number}  {row['image']}{_verdict(row)}"
        archive = row["python_archive"] and row["python_archive"]["file"]
        for label, text in (("pinned", row["digest"]), ("python from", row["python_from"] or archive)):
            if text is not None:
                yield "plain", f"   {label}: {text}"
        for line in wrap(clean(row["reason"]), WIDTH - 3, break_long_words=False, break_on_hyphens=False):
            yield "plain", f"   {line}"
    yield from _legend(shown, len(candidates) - len(shown))


def _verdict(row: Mapping[str, Any]) -> str:
    if row["usable"]:
        return ""
    return " (cannot match)" if row["mismatches"] else " (not usable)"


def _legend(shown: Sequence[Mapping[str, Any]], more: int) -> Lines:
    yield "plain", ""
    if any(value["expected"] for row in shown for value in row["holds"].values()):
        yield "note", "~ expected by other images of that month; `--resolve` asks the registry"
    if more:
        yield "note", f"{more} more with `--all`"


def _everything(document: Mapping[str, Any]) -> Lines:
    yield "plain", "NVIDIA's TensorFlow images; ~ expected by other images of that month, - unknown"
    yield "plain", ""
    releases = [[row["image"], *_cells(row, list(COLUMNS))] for row in document["releases"]]
    yield from _styled(_table(["image", *COLUMNS.values()], releases))
    for title, key in (("NVIDIA's CUDA images", "cuda"), ("Python's slim images", "python")):
        yield "plain", ""
        yield "plain", title
        yield "plain", ""
        rows = [[row["image"], *_told(row)] for row in document[key]]
        yield from _styled(_table(["image", *(["cuDNN", "NCCL"] if key == "cuda" else ["patch releases"])], rows))
    yield from _pythons(document["systems"])


def _pythons(rows: Iterable[Mapping[str, Any]]) -> Lines:
    """Yield the systems that are known, and which images have their own Python."""
    yield "plain", ""
    yield "plain", "Systems, for a Python that is copied or installed"
    yield "plain", ""
    cells = [[row["image"], row["libc"], row["with_python"] or "-", row["python"] or "-"] for row in rows]
    yield from _styled(_table(["image", "glibc", "with its own Python", "Python"], cells))


def _told(row: Mapping[str, Any]) -> list[str]:
    if "patches" in row:
        return ["{} to {}".format(*row["patches"])]
    return _cells(row, ["cudnn", "nccl"])


def _cells(row: Mapping[str, Any], names: Iterable[str]) -> list[str]:
    held = (row["holds"].get(name) for name in names)
    return ["-" if value is None else ("~" if value["expected"] else "") + value["version"] for value in held]


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterable[str]:
    lines = [head, *([clean(cell) for cell in row] for row in rows)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(head))]
    for line in lines:
        yield "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()


def _styled(lines: Iterable[str]) -> Lines:
    for number, line in enumerate(lines):
        yield ("plain" if number else "title"), line
