"""What an image has of Python and of the distribution's libraries, such as the C library.

A base has other builds of the same versions than the machine where the lockfile was captured. So a build writes what the
image has into the image's own lockfile, and each start of a container compares it. Nothing is loaded for that: the
libraries are those that the loader would take, by the names that the lockfile has.
"""

from __future__ import annotations

import os
import sys

from envlock.runtime.collectors.python import parse_compiler
from envlock.runtime.judgement import LOADED
from envlock.runtime.loaded.description import INTERPRETER, STANDARD, Description
from envlock.runtime.loaded.identities import Identities
from envlock.runtime.loader.search import Found, Loader
from envlock.runtime.tables import table

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Dict, List, Tuple

    from envlock.runtime.facts import Document, Tree
    from envlock.runtime.host import Host


def hold_base(document: Document, host: Host) -> Document:
    """Return a lockfile with this image's Python and system libraries instead of the captured machine's."""
    facts = document["facts"]
    if LOADED not in facts:
        return document
    seen, _ = describe_base(facts[LOADED], host)
    # Python's own files are compared only if the locked compiler built them.
    python = {**(facts.get("python") or {}), "compiler": parse_compiler(sys.version)}
    return {**document, "facts": {**facts, "python": python, LOADED: {**facts[LOADED], **seen}}}


def describe_base(locked: Tree, host: Host) -> Tuple[Tree, Dict[str, str]]:
    """Return what of a lockfile's section `loaded` belongs to the base, as it is here, and where each file lies."""
    identities = Identities(host.environ)
    found = Description(host, identities, {})
    loader = Loader(host)
    roles = [role for role in table("loaded")["of_base"] if role in locked]
    files: List[str] = []
    for role in roles:
        for name in (each.partition(" ")[0] for each in locked[role]):
            path = loader.load(name, Found(name)).file
            if path is not None:
                files.append(os.path.realpath(path))
    found.add_mapped(dict.fromkeys([*_list_interpreter(loader), *files]))
    for name, value in locked.get(STANDARD, {}).items():
        found.add_standard_module(name, value.split()[1:])
    identities.save()
    named = [name for name in (INTERPRETER, STANDARD) if name in locked]
    return {name: found.facts.get(name, []) for name in (*named, *roles)}, found.places


def _list_interpreter(loader: Loader) -> List[str]:
    """Return the files of Python itself: the program, its library and its extension modules."""
    files = [os.path.realpath(sys.executable)]
    files += [path for path in loader.mapped if os.path.basename(path).startswith("libpython")]
    folder = os.path.join(os.path.realpath(os.path.dirname(os.__file__)), "lib-dynload")
    if os.path.isdir(folder):
        files += [os.path.join(folder, name) for name in sorted(os.listdir(folder))]
    return files
