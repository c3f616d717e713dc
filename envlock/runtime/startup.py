"""The code that Python runs before a program: sitecustomize, usercustomize, and .pth files with
code.

Only code that this interpreter runs counts: `.pth` files in its own site folders, and in these only
the lines that it executes; folders that other lines add are on the import path already. Code that
is known to change no result (by its name and every line, from a table) is recorded as known, so
that two correct installations of one environment agree.

Source: https://docs.python.org/3/library/site.html (and `addpackage` in Lib/site.py)
"""

from __future__ import annotations

import _imp
import os
import sys

from envlock.runtime.distributions import (
    get_first_import_path,
    get_import_path,
    list_entries_of_pythonpath,
    list_pth_files,
)
from envlock.runtime.facts import Unavailable
from envlock.runtime.host import Host, read_bytes
from envlock.runtime.shadows import find_shadows, split_archive
from envlock.runtime.tables import table

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Dict, List, Optional, Union

    from envlock.runtime.facts import Tree

    Fact = Union[str, Unavailable, None]

SITES = ("site-packages", "dist-packages")
HOOKS = ("sitecustomize", "usercustomize")
"""Modules that Python itself imports at its start."""
READ_LIMIT = 1 << 20  # bytes of a file
NAME_LIMIT = 100  # characters of a fact's path; file names can have 255
ENDINGS = (*_imp.extension_suffixes(), ".py", ".pyc")
"""Of a module, in the order in which `import` takes them.

Source: _get_supported_file_loaders in importlib/_bootstrap_external.py
"""
ENDINGS_IN_ZIP = ("/__init__.pyc", "/__init__.py", ".pyc", ".py")
"""Source: _zip_searchorder in Lib/zipimport.py"""
ADDING = (
    (b'site.addsitedir(__import__("os").fsdecode(b"', b'"))'),
    (b'site.addsitedir("', b'")'),
)
"""What surrounds a folder in a statement that adds it."""
COMPUTING = {
    "builtins": ("abs", "divmod", "hash", "max", "min", "pow", "round", "sorted", "sum"),
    "cmath": (),
    "math": (),
}
"""Compiled modules of Python that compute, and which of their functions do; empty for all."""


def collect_startup(host: Host) -> Tree:
    """Return digests of the code that runs before a program, and the names of the code that is
    known to change nothing.
    """
    if sys.flags.no_site:  # -S: no such code runs
        return {"known": [], "modules": {}, "pth": {}, "sitecustomize": None, "usercustomize": None}
    known: List[str] = []
    pth: Dict[str, Fact] = {}
    code: List[bytes] = []
    usual: List[bytes] = []
    for folder in _list_site_folders(host):
        for name in sorted(list_pth_files(host).get(folder, ())):
            fact = _read_pth(host, folder, name, known, code, usual)
            if fact is None:
                continue
            key = make_key(name)
            if key in pth:
                fact = _combine(pth[key], fact)
            pth[key] = fact
    site_module = _read_module(host, "sitecustomize", known, code)
    user_module = None
    if getattr(sys.modules.get("site"), "ENABLE_USER_SITE", False) is True:
        user_module = _read_module(host, "usercustomize", known, code)
    hooks = {"sitecustomize": site_module, "usercustomize": user_module}
    modules: Tree = {}
    if code or (usual and find_shadows(host)):
        # Not at the top: in most environments only known code runs at the start.
        from envlock.runtime.startup_imports import collect_modules

        found = collect_modules(host, code, usual, read_module, _hash)
        # One that imports the next of its name, as PyCharm's does, is a fact already.
        modules = {name: fact for name, fact in found.items() if fact != hooks.get(name)}
    facts: Tree = {
        "known": sorted(set(known)),
        "modules": modules,
        "pth": pth,
        **hooks,
    }
    replaced = find_replaced()
    if replaced:
        facts["replaced"] = replaced
    return facts


def find_replaced() -> List[str]:
    """Return the functions of Python's own compiled modules that are not the original ones: what code that ran before
    did, whatever it depended on.
    """
    original = type(len)
    found = []
    for module, chosen in COMPUTING.items():
        functions = vars(sys.modules[module]) if module in sys.modules else {}
        for name in chosen or functions:
            function = functions.get(name)
            if not callable(function) or name[0] == "_":
                continue
            # Another original one in its place knows its own name.
            own = (module, name)
            if type(function) is not original or (function.__module__, function.__name__) != own:
                found.append(f"{module}.{name}")
    return sorted(found)


def _list_site_folders(host: Host) -> List[str]:
    """Return the folders whose .pth files Python reads, which are not those that only PYTHONPATH
    adds.
    """
    skipped = set(list_entries_of_pythonpath(host))
    ask = getattr(sys.modules.get("site"), "getsitepackages", None)
    if skipped and ask is not None:
        skipped.difference_update(ask())
    folders: List[str] = []
    for entry in get_import_path(host):
        if entry.endswith(SITES) and entry not in skipped and entry not in folders:
            folders.append(entry)
    return folders


def _read_pth(
    host: Host, folder: str, name: str, known: List[str], run: List[bytes], usual: List[bytes]
) -> Fact:
    """Return the digest of the lines that a file runs, which are added to `run`; None if it runs no
    lines, or the usual ones: known lines, and the hook of an editable install, whose source is a fact
    of its package.
    """
    try:
        data = read_bytes(os.path.join(folder, name), READ_LIMIT + 1) or b""
    except OSError as error:
        return Unavailable(f"a .pth file cannot be read: {error.strerror}", "unreadable")
    if data.startswith(b"\xef\xbb\xbf"):  # a byte order mark, which `site` skips, too
        data = data[3:]
    begins = (b"import ", b"import\t")
    code = [line.rstrip() for line in data.splitlines() if line.startswith(begins)]
    code = [line for line in code if not _only_adds_folders(host, line)]
    if not code:
        return None
    if _is_known(name, code):
        known.append(name)
        usual += code
        return None
    # Not at the top: most .pth files run nothing, or are known.
    from envlock.runtime.editable_installs import owns_hook

    if owns_hook(host, folder, name, code):
        usual += code
        return None
    # The location of the environment does not count. The folder is replaced first, because its path
    # begins with the prefix.
    text = b"\n".join(code)
    run.append(text)
    text = text.replace(folder.encode("utf-8", "surrogateescape"), b"SITE")
    text = text.replace(os.fsencode(sys.prefix), b"PREFIX")
    return _hash(text)


def _only_adds_folders(host: Host, line: bytes) -> bool:
    """Return whether a line adds folders of packages and does nothing else, as that of `uv run --with`: what is in them
    counts, because they are on the import path.

    Source: the file that uv 0.13 writes, and `addsitedir` in Lib/site.py
    """
    first, *others = [each.strip() for each in line.split(b";")]
    return first == b"import site" and all(_adds_folder(host, each) for each in others)


def _adds_folder(host: Host, statement: bytes) -> bool:
    for begin, end in ADDING:
        folder = statement[len(begin) : -len(end)]
        if statement == begin + folder + end and not set(folder) & set(b"\"\\'()"):
            entry = os.fsdecode(folder)
            return entry.endswith(SITES) and entry in get_import_path(host)
    return False


def _read_module(host: Host, name: str, known: List[str], run: List[bytes]) -> Fact:
    """Return the digest of the module that `import` loads, whose code is added to `run`; None if there
    is no such module, or a known one.
    """
    for entry in get_first_import_path(host):
        try:
            data = read_module(entry, name)
        except OSError as error:
            return Unavailable(f"{name} cannot be read: {error.strerror}", "unreadable")
        if data is None:
            continue
        lines = [line.rstrip() for line in data.splitlines()]
        code = [line for line in lines if line and not line.startswith(b"#")]
        if _is_known(name + ".py", code, is_whole=True):
            known.append(name + ".py")
            return None
        run.append(data)
        return _hash(data)
    return None


def read_module(entry: str, name: str) -> Optional[bytes]:
    """Return the bytes of a module in one entry of the import path; None if the entry has no such
    module.

    Raises:
        OSError: it exists and cannot be read.
    """
    stem = os.path.join(entry, name)
    places = [stem + ending for ending in ENDINGS]
    if os.path.isdir(stem):  # a package goes before a module of the same name
        places = [os.path.join(stem, "__init__" + ending) for ending in ENDINGS] + places
    for place in places:
        if os.path.isfile(place):
            return read_bytes(place, READ_LIMIT + 1)
    archive, inside = split_archive(entry)
    return _read_zip(archive, inside + name) if os.path.isfile(archive) else None


def _read_zip(archive: str, name: str) -> Optional[bytes]:
    """Return a module of a zip file on the import path; None if the file has no such module.

    Raises:
        OSError: it exists and cannot be read.
    """
    # Not at the top: hardly any import path has a zip file, and its reader takes milliseconds.
    from envlock.runtime.archives import DamagedArchiveError, open_zip

    try:
        with open_zip(archive) as opened:
            names = opened.namelist()
            for member in (name + ending for ending in ENDINGS_IN_ZIP):
                if member in names:
                    with opened.open(member) as stream:
                        return stream.read(READ_LIMIT + 1)
    except DamagedArchiveError:  # Python imports nothing from it, either
        pass
    return None


def _is_known(name: str, code: List[bytes], *, is_whole: bool = False) -> bool:
    """Return whether a file of this name has only code that a known tool writes; with `is_whole`,
    exactly that code.
    """
    lines = [line.encode("utf-8") for line in table("startup").get(name, ())]
    if not lines:
        return False
    if is_whole:
        return lines == code
    return all(line in lines for line in code)


def make_key(name: str) -> str:
    """Return the name of a .pth file as a step of a path: without its ending, with hyphens for
    other characters.
    """
    key = ""
    for sign in name[: -len(".pth")]:
        if sign.isascii() and (sign.isalnum() or sign in "_-"):
            key += sign
        else:
            key += "-"
    return key[:NAME_LIMIT] or "-"


def _combine(left: Fact, right: Fact) -> Fact:
    """Return one fact for two files of the same name in two site folders: the unavailable one, or
    both together.
    """
    for fact in (left, right):
        if not isinstance(fact, str):
            return fact
    return _hash(f"{left} {right}".encode("ascii"))


def _hash(data: bytes) -> str:
    if len(data) > READ_LIMIT:
        data = data[:READ_LIMIT] + b" and more"
    return hash_bytes(data)


def hash_bytes(data: bytes) -> str:
    """Return the SHA-256 of some bytes, as a fact holds it."""
    # Not at the top: it loads OpenSSL, and in most environments there is nothing to hash.
    from hashlib import sha256

    return "sha256:" + sha256(data).hexdigest()
