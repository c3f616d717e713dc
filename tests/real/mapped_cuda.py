"""The check of the checker: after TensorFlow was imported, are the mapped libraries those that the facts name?

At `import tensorflow` only libcudart and libcuda are loaded; cuDNN, cuBLAS and the others come with the first operation
that needs them, so a library that is not mapped contradicts nothing.
"""

from __future__ import annotations

from envlock.runtime.cuda.library_list import is_cuda
from envlock.runtime.loader.search import get_stem, parse_mapped_files

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any


class Contradiction:
    """A mapped library that is not the file of the facts.

    Attributes:
        key: name of the fact, such as `cudnn`.
        expected: the facts' file; None where they say "not found".
        actual: the mapped file, written the same way.
    """

    __slots__ = ("actual", "expected", "key")

    def __init__(self, key: str, expected: str | None, actual: str) -> None:
        self.key = key
        self.expected = expected
        self.actual = actual

    def __repr__(self) -> str:
        return f"Contradiction({self.key!r}, {self.expected!r}, {self.actual!r})"


def loaded_cuda(maps: str, write: Callable[[str], str]) -> dict[str, list[str]]:
    """Return the mapped CUDA libraries: name without version -> files, each as `write` puts it.

    Args:
        maps: text of `/proc/<pid>/maps`.
        write: how a mapped path is written in facts (`PortablePaths.render_path`).
    """
    found: dict[str, list[str]] = {}
    for path in parse_mapped_files(maps):
        name = path.rpartition("/")[2]
        if is_cuda(name):
            found.setdefault(get_stem(name), []).append(write(path))
    return found


def contradictions(maps: str, cuda: Mapping[str, Any], write: Callable[[str], str]) -> list[Contradiction]:
    """Return where the mapped libraries are not the files of the facts, in order of the facts.

    Args:
        maps: text of `/proc/<pid>/maps`.
        cuda: the section `cuda` of the facts (live or locked).
        write: how a mapped path is written in facts.
    """
    mapped = loaded_cuda(maps, write)
    found: list[Contradiction] = []
    for key, facts in cuda.items():
        if not isinstance(facts, dict) or "soname" not in facts or not isinstance(facts["soname"], str):
            continue
        expected = facts.get("file")
        if expected is not None and not isinstance(expected, str):
            continue  # it could not be told
        actual = mapped.get(get_stem(facts["soname"]), ())
        found += [Contradiction(key, expected, file) for file in actual if file != expected]
    return found
