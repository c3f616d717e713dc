"""The form of an issue of TensorFlow's, in Markdown: with headings since 2022, as a list before. Pure.

Not read: the GPU, of which people write parts of a name.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence

from envlock.lock.pastes.statement import Line, Statement

_MARKS = " #*-:"
_EXAMPLE = re.compile(r"\((?:use command|e\.g)[^()]{0,80}\)?", re.ASCII)
_BUILD = re.compile(r"v[0-9]\S{0,60}-g[0-9a-f]{4,40}", re.ASCII)
_RELEASE = re.compile(r"(?<![0-9.])[0-9]+(?:\.[0-9]+)+(?:rc[0-9]+)?", re.ASCII)
_SYSTEM = re.compile(r"\b(ubuntu|debian)[ :-]+(\d\d(?:\.\d\d)?)\b", re.ASCII | re.IGNORECASE)
_KERNELS = (
    ("Linux", re.compile(r"linux|ubuntu|debian|wsl", re.IGNORECASE)),
    ("Windows", re.compile("windows", re.IGNORECASE)),
    ("Darwin", re.compile(r"mac ?os|os ?x", re.IGNORECASE)),
)
"""The first that is found: Ubuntu on Windows is Linux."""
_LIBRARY = re.compile(r"(cuda|cudnn)[ :=v-]{1,4}([0-9]+(?:\.[0-9]+)*)", re.ASCII | re.IGNORECASE)


def read_form(lines: Sequence[Line]) -> Iterator[Statement]:
    """Yield what is filled in below, or after, the names of the fields."""
    field = None
    for number, text in lines:
        stripped = text.strip(_MARKS)
        name = next((each for each in _FIELDS if stripped.lower().startswith(each)), None)
        if name is not None:
            field = name
            stripped = _EXAMPLE.sub("", stripped[len(name) :]).strip(_MARKS)
        if field is not None and stripped:
            yield from _FIELDS[field](stripped, number)
            field = None


def _state_tensorflow(text: str, line: int) -> Iterator[Statement]:
    return _state_release("tensorflow.version", _BUILD.sub("", text), line)


def _state_python(text: str, line: int) -> Iterator[Statement]:
    return _state_release("python.version", text, line)


def _state_release(path: str, text: str, line: int) -> Iterator[Statement]:
    """Yield the one version that an answer names; of several none is the one."""
    versions = set(_RELEASE.findall(text))
    if len(versions) == 1:
        yield Statement(path, versions.pop(), line, is_loose=True)


def _state_system(text: str, line: int) -> Iterator[Statement]:
    kernel = next((name for name, pattern in _KERNELS if pattern.search(text)), None)
    if kernel is not None:
        yield Statement("system.kernel", kernel, line)
    system = _SYSTEM.search(text)
    if system is not None:
        yield Statement("system.os", system[1].lower(), line)
        yield Statement("system.os_version", system[2], line)


def _state_libraries(text: str, line: int) -> Iterator[Statement]:
    for name, version in _LIBRARY.findall(text):
        library = "cudart" if name.lower() == "cuda" else "cudnn"
        yield Statement(f"cuda.{library}.version", version, line, is_loose=True)


_FIELDS: dict[str, Callable[[str, int], Iterator[Statement]]] = {
    "tensorflow version": _state_tensorflow,
    "python version": _state_python,
    "os platform and distribution": _state_system,
    "cuda/cudnn version": _state_libraries,
}
"""What reads the answer to a field, by the field's beginning."""
