"""The place in the user's code at which something happened: the innermost frame outside libraries."""

from __future__ import annotations

import os
import sys
import sysconfig

TYPE_CHECKING = False
if TYPE_CHECKING:
    from traceback import FrameSummary
    from types import CodeType, FrameType
    from typing import Dict, Iterable, Optional, Tuple

    Place = Tuple[str, int, str]

LIBRARIES = {"site-packages", "dist-packages"}
DEEPEST = 200
"""Frames that are searched for a line of the user's code."""
MOST_NAMES = 10_000
"""Files whose names are remembered: a program can create code under ever new names."""
_AUTOGRAPH = "__autograph_generated_file"


class Places:
    """Finds the user's frame; `folder` is that of the script, and places are relative to it."""

    def __init__(self, folder: str) -> None:
        """Treat files below `folder`, and all others outside libraries, as the user's own."""
        self.folder = os.path.realpath(folder)
        paths = sysconfig.get_paths()
        self._libraries = tuple(
            os.path.realpath(paths[name]) + os.sep for name in ("stdlib", "platstdlib")
        )
        package = os.path.dirname(os.path.dirname(os.path.dirname(os.path.realpath(__file__))))
        self._package = package + os.sep
        # By identity: hashing code takes a microsecond. The code is kept alive, so that no identity
        # is reused.
        self._known: Dict[int, Tuple[CodeType, Optional[str]]] = {}
        self._names: Dict[str, Optional[str]] = {}

    def find_caller(self, depth: int = 1, *, through_libraries: bool = True) -> Optional[Place]:
        """Return the innermost frame of the user's code, from `depth` frames above this method on.

        Without `through_libraries`: None if the frame at `depth` itself is in a library.
        """
        limit = 1 if not through_libraries else DEEPEST
        return self._find_innermost(sys._getframe(depth), limit)

    def find_in_thread(self, thread: int) -> Optional[Place]:
        """Return the innermost frame of the user's code in which a thread, given by its identity,
        is now.
        """
        return self._find_innermost(sys._current_frames().get(thread), DEEPEST)

    def _find_innermost(self, frame: Optional[FrameType], limit: int) -> Optional[Place]:
        """Return the first of `limit` frames, from `frame` outwards, that is in the user's code."""
        known = self._known
        converted: Optional[Tuple[str, int]] = None
        while frame is not None and limit:
            code = frame.f_code
            _, name = known.get(id(code)) or self._learn(code)
            if name is not None:
                return name, frame.f_lineno, code.co_name
            if converted is not None and code.co_name == "converted_call":
                place = self._find_origin(frame, converted)
                return place or self._find_innermost(frame.f_back, limit)
            if converted is None and _AUTOGRAPH in code.co_filename:
                converted = code.co_filename, frame.f_lineno
            frame = frame.f_back
            limit -= 1
        return None

    def _find_origin(self, frame: FrameType, line: Tuple[str, int]) -> Optional[Place]:
        """Return the user's line that AutoGraph generated a line from.

        `frame` is TensorFlow's call of the generated code.
        """
        sources = getattr(frame.f_locals.get("converted_f"), "ag_source_map", None) or {}
        origin = sources.get(line)
        if origin is None:
            return None
        name = self.find_name(origin.loc.filename)
        if name is None:
            return None
        return name, origin.loc.lineno, origin.function_name or ""

    def find_in_stack(self, stack: Iterable[FrameSummary]) -> Optional[Place]:
        """Return the innermost frame of the user's code in the stack of an operation in a graph,
        mapped to the original lines.
        """
        for frame in reversed(list(stack)):
            name = self.find_name(frame.filename)
            if name is not None:
                return name, frame.lineno or 0, frame.name
        return None

    def find_name(self, file: str) -> Optional[str]:
        """Return the name of a file of the user, relative to the script's folder; None for a file
        of a library.
        """
        if file not in self._names:
            if len(self._names) > MOST_NAMES:
                self._names.clear()
            self._names[file] = self._compute_name(file)
        return self._names[file]

    def _compute_name(self, file: str) -> Optional[str]:
        if file.startswith("<") or _AUTOGRAPH in file:
            return None
        real = os.path.realpath(file)
        if real.startswith(self._package):
            return None
        inside = os.path.relpath(real, self.folder)
        if not inside.startswith(".."):
            # An environment may be inside the user's folder.
            if LIBRARIES.isdisjoint(inside.split(os.sep)):
                return inside
            return None
        if real.startswith(self._libraries) or not LIBRARIES.isdisjoint(real.split(os.sep)):
            return None
        return os.path.basename(real)

    def _learn(self, code: CodeType) -> Tuple[CodeType, Optional[str]]:
        entry = self._known[id(code)] = code, self.find_name(code.co_filename)
        return entry
