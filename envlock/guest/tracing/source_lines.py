"""Where in the user's code something happened: the innermost frame that is no library's."""

from __future__ import annotations

import os
import sys
import sysconfig

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import CodeType, FrameType
    from typing import Any, Dict, Iterable, Optional, Tuple

    Place = Tuple[str, int, str]

LIBRARIES = ("site-packages", "dist-packages")
DEEPEST = 200  # frames
_AUTOGRAPH = "__autograph_generated_file"


class Places:
    """Finds the user's frame; `folder` is where the script is, and places are relative to it."""

    def __init__(self, folder: str) -> None:
        """Take what is below `folder`, and whatever else is no library, for the user's own."""
        self.folder = os.path.realpath(folder)
        paths = sysconfig.get_paths()
        self._libraries = tuple(
            os.path.realpath(paths[each]) + os.sep for each in ("stdlib", "platstdlib")
        )
        self._ours = (
            os.path.dirname(os.path.dirname(os.path.dirname(os.path.realpath(__file__)))) + os.sep
        )
        self._known: Dict[
            int, Tuple[CodeType, Optional[str]]
        ] = {}  # by identity: to hash code takes a microsecond
        self._names: Dict[str, Optional[str]] = {}

    def here(self, depth: int = 1, *, libraries: bool = True) -> Optional[Place]:
        """Return the innermost frame of the user's, from `depth` frames above the caller on.

        Without `libraries`: None where that frame itself is a library's.
        """
        return self._innermost(sys._getframe(depth), DEEPEST if libraries else 1)

    def of_thread(self, thread: int) -> Optional[Place]:
        """Return the innermost frame of the user's in which a thread is now, by its identity."""
        return self._innermost(sys._current_frames().get(thread), DEEPEST)

    def _innermost(self, frame: Optional[FrameType], left: int) -> Optional[Place]:
        found = self._known
        converted: Optional[Tuple[str, int]] = None
        while frame is not None and left:
            code = frame.f_code
            known = found.get(id(code)) or self._learn(code)
            if known[1] is not None:
                return known[1], frame.f_lineno, code.co_name
            if converted is not None and code.co_name == "converted_call":
                return self._origin(frame, converted) or self._innermost(frame.f_back, left)
            if converted is None and _AUTOGRAPH in code.co_filename:
                converted = code.co_filename, frame.f_lineno
            frame = frame.f_back
            left -= 1
        return None

    def _origin(self, frame: FrameType, line: Tuple[str, int]) -> Optional[Place]:
        """Return the user's line that AutoGraph made a line of; `frame` is TensorFlow's call of what it has made."""
        sources = getattr(frame.f_locals.get("converted_f"), "ag_source_map", None) or {}
        origin: Any = sources.get(line)
        name = None if origin is None else self.name(origin.loc.filename)
        return None if name is None else (name, origin.loc.lineno, origin.function_name or "")

    def of_stack(self, stack: Iterable[Any]) -> Optional[Place]:
        """Return the innermost frame of the user's in the stack of an operation in a graph, mapped to his own lines."""
        for frame in reversed(list(stack)):
            name = self.name(frame.filename)
            if name is not None:
                return name, frame.lineno, frame.name
        return None

    def name(self, file: str) -> Optional[str]:
        """Return how a file of the user's is called, and None for a library's."""
        if file not in self._names:
            if len(self._names) > 10_000:
                self._names.clear()
            self._names[file] = self._name(file)
        return self._names[file]

    def _name(self, file: str) -> Optional[str]:
        if file.startswith("<") or _AUTOGRAPH in file:
            return None
        real = os.path.realpath(file)
        if real.startswith(self._ours):
            return None
        inside = os.path.relpath(real, self.folder)
        if inside.startswith(".."):
            if real.startswith(self._libraries) or any(
                each in real.split(os.sep) for each in LIBRARIES
            ):
                return None
            return os.path.basename(real)
        return None if any(each in inside.split(os.sep) for each in LIBRARIES) else inside

    def _learn(self, code: CodeType) -> Tuple[CodeType, Optional[str]]:
        found = self._known[id(code)] = code, self.name(code.co_filename)
        return found
