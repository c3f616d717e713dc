"""Run the code that Python runs before a program, and note the files that it opens, of a process that was started
with `-S`.

What of them no other fact holds can change results unseen: see envlock/runtime/loaded/startup_files.py.
"""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from importlib.util import source_from_cache

from envlock.runtime.host import KERNEL

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping
    from types import FrameType
    from typing import Optional

    from envlock.runtime.host import Host

RUNNERS = {
    "addpackage": None,
    "execsitecustomize": "sitecustomize.py",
    "execusercustomize": "usercustomize.py",
}
"""The functions of `site` that run code: of a .pth file, which its variable `name` names, or of a module."""
CUSTOMIZING = ("sitecustomize", "usercustomize")
LOOKS = ("open", "os.listdir", "os.scandir")
"""The events of files and folders that are looked at: https://docs.python.org/3/library/audit_events.html"""
QUESTIONS = ("stat", "lstat", "access")
"""The functions of `os` that raise no event, and tell whether a file exists, or how it is."""
SUPPORTS = (
    os.supports_dir_fd,
    os.supports_effective_ids,
    os.supports_fd,
    os.supports_follow_symlinks,
)
WRITING = os.O_WRONLY | os.O_RDWR


class Start:
    """What code at the start did.

    Attributes:
        opened: the files that it opened, or tried to, and the folders that it listed; each with the name of the file
            whose code that was.
        asked: what it asked about only, as whether it exists.
        modules: the files of the modules that were imported, by name.
    """

    def __init__(self) -> None:
        self.opened: dict[str, str] = {}
        self.asked: dict[str, str] = {}
        self.modules: dict[str, list[str]] = {}
        self.is_over = False

    def observe(self, event: str, args: tuple[object, ...]) -> None:
        """Note what is looked at: an audit hook, which stays as long as the process."""
        if self.is_over or event not in LOOKS:
            return
        path, mode, flags = (*args, None, None)[:3]
        is_written = isinstance(flags, int) and flags & WRITING
        if path is None or isinstance(path, int) or is_written or set(str(mode)) & set("wax+"):
            return
        self._note(path, self.opened, sys._getframe(1))

    def ask(self, path: object) -> None:
        """Note that a function, which was called by the code, asks about a path."""
        if not self.is_over and not isinstance(path, int):
            self._note(path, self.asked, sys._getframe(2))

    def _note(self, path: object, noted: dict[str, str], frame: FrameType) -> None:
        # An exception would stop the code.
        with suppress(Exception):
            asker = _find_asker(frame)
            if asker is not None:
                name = os.path.abspath(os.fsdecode(path))  # type: ignore[arg-type]
                if not name.startswith(KERNEL):
                    noted.setdefault(name, asker)

    def finish(self) -> None:
        """Note nothing any more."""
        self.is_over = True
        for name, module in list(sys.modules.items()):
            spec = getattr(module, "__spec__", None)
            files = (getattr(spec, "origin", None), getattr(spec, "cached", None))
            self.modules[name] = [each for each in files if isinstance(each, str)]


def run_site() -> Start:
    """Do what Python does without `-S` before a program, and return what was opened."""
    start = Start()
    sys.addaudithook(start.observe)
    import site

    originals = {name: getattr(os, name) for name in QUESTIONS}
    for name, original in originals.items():
        setattr(os, name, _make_noting(original, start))
    try:
        site.main()
    finally:
        for name, original in originals.items():
            setattr(os, name, original)
        start.finish()
    return start


def _make_noting(original: Callable[..., object], start: Start) -> Callable[..., object]:
    """Return a function of `os` that notes what it is asked about."""

    def look(path: object, *args: object, **more: object) -> object:
        start.ask(path)
        return original(path, *args, **more)

    for functions in SUPPORTS:
        if original in functions:
            functions.add(look)
    return look


def _find_asker(frame: Optional[FrameType]) -> Optional[str]:
    """Return the name of the file whose code is running for `site`; None for `site` itself, which reads .pth files."""
    while frame is not None and frame.f_globals.get("__name__") in ("genericpath", "posixpath"):
        frame = frame.f_back
    innermost = frame
    while frame is not None:
        name = frame.f_code.co_name
        if name in RUNNERS and frame.f_globals.get("__name__") == "site":
            asker = RUNNERS[name] or str(frame.f_locals.get("name"))
            return None if frame is innermost else asker
        frame = frame.f_back
    return None


def find_unheld(
    start: Start, host: Host, known: Collection[str], held: Collection[str]
) -> dict[str, str]:
    """Return the files that nothing else holds, by path, each with the name of the file whose code opened it.

    Args:
        start: what was opened.
        host: this machine.
        known: the names of the files with code at the start that changes no result.
        held: the modules that are facts of their own, as facts name them.
    """
    # Not at the top: `site` has to come first.
    from envlock.runtime.loaded.owners import LISTED, Owners

    owners = Owners(host)
    explained = set(_list_module_files(start.modules, host, held))
    library = os.path.realpath(os.path.dirname(os.__file__)) + "/"
    found = {}
    for path, asker in start.opened.items():
        source = _get_source(path)
        real = os.path.realpath(source)
        is_of_python = real.startswith(library) and "-packages/" not in real
        if asker in known or path in explained or source in explained or is_of_python:
            continue
        if not os.path.isfile(path) or _is_metadata(path, host.path):
            continue
        if owners.find(source) != LISTED:
            found[source] = asker
    return found


def _get_source(path: str) -> str:
    """Return the source of a compiled file; the path itself of any other."""
    try:
        source = source_from_cache(path)
    except ValueError:
        return path
    return source if os.path.isfile(source) else path


def _is_metadata(path: str, folders: Iterable[str]) -> bool:
    """Return whether a file is metadata of a package in one of these folders, which facts hold."""
    for folder in folders:
        begin = folder.rstrip("/") + "/"
        if path.startswith(begin):
            top = path[len(begin) :].partition("/")[0]
            if top.endswith((".dist-info", ".egg-info")):
                return True
    return False


def _list_module_files(
    modules: Mapping[str, Iterable[str]], host: Host, held: Collection[str]
) -> Iterable[str]:
    """Yield the files of modules that facts hold, that Python has, or that a package has."""
    from envlock.runtime.startup import read_module
    from envlock.runtime.startup_imports import is_known_module, make_module_key

    for name, files in modules.items():
        top = name.partition(".")[0]
        is_held = name in CUSTOMIZING or make_module_key(name) in held
        if is_held or is_known_module(host, top, read_module):
            yield from files
