"""The modules that code at the start of Python imports and that neither the standard library nor a package has.

A line `import hook` in a .pth file says nothing about what `hook` does.
"""

from __future__ import annotations

import os
import sys

from envlock.runtime.distributions import (
    find_distributions,
    get_first_import_path,
    get_import_path,
    normalise,
)
from envlock.runtime.facts import Unavailable
from envlock.runtime.shadows import find_shadows, owns

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Callable, Iterator, List, Optional

    from envlock.runtime.facts import Tree
    from envlock.runtime.host import Host

    Reader = Callable[[str, str], Optional[bytes]]
    """Returns the content of a module in an entry of the import path."""

NAME_LIMIT = 100  # characters of a fact's path
LIMIT = 100
"""Modules: a hook that imports more is larger than any that was seen."""


def collect_modules(
    host: Host,
    code: List[bytes],
    usual: List[bytes],
    read_module: Reader,
    make_fact: Callable[[bytes], str],
) -> Tree:
    """Return the digest of each module that some code imports, and of what these import, by name.

    Modules of the standard library and of installed packages are left out: their versions are facts. A module
    that hides an installed one is listed; it also runs where the usual lines of installers import that name.
    """
    hiding = {
        name
        for name in find_shadows(host)
        if "." not in name and _hides_installed(host, name, read_module)
    }
    words = {word for line in usual for word in _list_words(line)}
    pending = [name for text in code for name in _iter_imports(text, "")]
    pending += sorted(hiding & words)
    facts: Tree = {}
    seen = set()
    while pending and len(facts) < LIMIT:
        name = pending.pop(0)
        top = name.partition(".")[0]
        if name in seen or (top not in hiding and is_known_module(host, top, read_module)):
            continue
        seen.add(name)
        try:
            data = _find(host, name, read_module)
        except OSError as error:
            facts[make_module_key(name)] = Unavailable(
                f"it cannot be read: {error.strerror}", "unreadable"
            )
            continue
        if data is not None:
            facts[make_module_key(name)] = make_fact(data)
            pending += _iter_imports(data, name)
    return facts


def _hides_installed(host: Host, name: str, read_module: Reader) -> bool:
    """Return whether code at the start of Python, when the script's folder is not on the path yet, gets another
    module than the installed one.
    """
    sites = {each.folder for each in find_distributions(host).values()}
    for entry in get_import_path(host):
        try:
            found = read_module(entry, name) is not None
        except OSError:  # it is there
            found = True
        if found:
            return entry not in sites
    return False


def _list_words(line: bytes) -> List[str]:
    text = line.decode("utf-8", "replace")
    return "".join(each if each.isalnum() or each == "_" else " " for each in text).split()


def make_module_key(name: str) -> str:
    """Return the name of a module as a step of a fact's path."""
    return name.replace(".", "-")[:NAME_LIMIT]


def _iter_imports(code: bytes, module: str) -> Iterator[str]:
    """Yield the modules that some lines may import, with the packages that they are in.

    Lines are read as text, as a part of one (`exec`) can be code, too; a word too many finds no file.
    """
    for line in code.decode("utf-8", "replace").replace(";", "\n").splitlines():
        words = line.replace(",", " , ").split()
        if len(words) < 2 or not line.isascii():
            continue
        if words[0] == "from" and "import" in words:
            parts = [word.strip("()") for word in words[words.index("import") + 1 :]]
            names = []
            for within in _list_absolute(words[1], module):
                names += [within, *(f"{within}.{part}" for part in parts)]
        elif words[0] == "import":
            names = words[1:]
        else:
            continue
        for name in names:
            steps = name.split(".")
            if all(map(str.isidentifier, steps)):
                yield from (".".join(steps[:end]) for end in range(1, len(steps) + 1))


def _list_absolute(name: str, module: str) -> List[str]:
    """Return what a name can stand for that another module imports from, which may be a package."""
    plain = name.lstrip(".")
    dots = len(name) - len(plain)
    if not dots:
        return [name]
    steps = module.split(".")
    folders = [steps[: len(steps) - dots], steps[: len(steps) - dots + 1]]
    return [".".join([*folder, *filter(None, [plain])]) for folder in folders if folder]


def is_known_module(host: Host, name: str, read_module: Reader) -> bool:
    """Return whether a module is of the standard library, or of an installed package."""
    library: Optional[frozenset[str]] = getattr(sys, "stdlib_module_names", None)  # from 3.10 on
    if name in sys.builtin_module_names or (library is not None and name in library):
        return True
    if library is None and read_module(os.path.dirname(os.__file__), name) is not None:
        return True
    distributions = find_distributions(host)
    if normalise(name) in distributions:
        return True
    return any(owns(each, name) for each in distributions.values())


def _find(host: Host, name: str, read_module: Reader) -> Optional[bytes]:
    """Return the content of a module, or None.

    Raises:
        OSError: it exists and cannot be read.
    """
    *folders, last = name.split(".")
    for entry in get_first_import_path(host):
        data = read_module(os.path.join(entry, *folders), last)
        if data is not None:
            return data
    return None
