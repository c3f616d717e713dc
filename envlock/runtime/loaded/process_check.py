"""Compare what this process has loaded with a lockfile: only what was not explained before, and everything before a
refusal.
"""

from __future__ import annotations

import json
import os
import sys
import time
from hashlib import sha256

from envlock.runtime.collectors.python import ARITHMETIC, collect_arithmetic, format_arithmetic
from envlock.runtime.compare import PROVEN
from envlock.runtime.errors import FactError
from envlock.runtime.host import Host
from envlock.runtime.judgement import LOADED, annotate, has_overrides_enabled, judge_here
from envlock.runtime.loaded.explained import Note, get_line, parse
from envlock.runtime.loaded.look import list_mapped, list_module_files
from envlock.runtime.loaded.startup_files import STARTUP, look_at_files
from envlock.runtime.user_cache import read_own_file, write_own_file
from envlock.runtime.version import __version__

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import List, Optional, Tuple

    from envlock.runtime.collectors import Snapshot
    from envlock.runtime.facts import Document, Tree
    from envlock.runtime.loaded.description import Description
    from envlock.runtime.report import Report

SIZE_LIMIT = 1 << 24
OF_NUMPY = ("blas", "lapack")
"""The roles of which everything is loaded once NumPy is."""


def check_process(
    document: Document, live: Snapshot, policy: Optional[str], finished: Optional[str] = None
) -> Optional[Report]:
    """Return a report that does not match, or None if nothing that this process has loaded differs.

    Args:
        document: a lockfile with the section `loaded`.
        live: the facts of this process, which match.
        policy: as for `assert_locked()`.
        finished: a module whose import ends just now.

    Raises:
        FactError: the kernel does not say what is mapped.
    """
    host = Host()
    mapped = _list_mapped()
    locked: Tree = document["facts"][LOADED]
    is_whole = all(_is_imported(name, finished) for name in locked.get("imports", ()))
    complete = OF_NUMPY if _is_imported("numpy", finished) else ()
    is_same_build = _get_compiler(document["facts"]) == _get_compiler(live.facts)
    name = _make_name(host, document, [policy, is_whole, complete, is_same_build])
    note = parse(_read(host, name))
    new = _list_new(note, mapped)
    before = format_arithmetic(live.facts["python"])
    expected = {locked.get(ARITHMETIC, before)}
    if not is_whole:  # what changes it at the capture may be imported later
        expected.add(before)
    is_as_known = format_arithmetic(collect_arithmetic()) in expected
    started = look_at_files(locked.get(STARTUP, ()))
    if new == ([], []) and is_as_known and started == locked.get(STARTUP, []):
        return None
    # Start-up time: most processes load only what was explained before.
    from envlock.runtime.loaded.agreement import ON_DEMAND, align, name_files
    from envlock.runtime.loaded.observation import describe

    parts = {module: value.split()[1:] for module, value in locked.get("standard", {}).items()}
    if new is not None and is_as_known:
        found = describe(host, *new, parts)
        found.facts.update({ARITHMETIC: locked.get(ARITHMETIC), STARTUP: started})
        section = align(locked, found.facts, is_whole=False, is_same_build=is_same_build)
        if section == locked:
            _write(host, name, note, _list_lines(found, *new))
            return None
    modules = list_module_files()
    found = describe(host, mapped, modules, parts)
    found.facts[STARTUP] = started
    if is_as_known:
        found.facts[ARITHMETIC] = locked.get(ARITHMETIC)
    if found.unread:
        is_whole, complete = False, ()
    section = align(
        locked, found.facts, is_whole=is_whole, complete=complete, is_same_build=is_same_build
    )
    if section != locked:
        report = _judge(document, live.with_facts({**live.facts, LOADED: section}), policy)
        name_files(report.findings, found.places)
        if not report.match:
            return report
        if any(finding.rule == PROVEN for finding in report.findings):
            return None  # the proof may be gone next time
    note.sites = [get_line(folder) or "" for folder in found.list_sites()]
    needed = [role for role in locked if role not in ON_DEMAND] if is_whole else complete
    note.needed = found.list_computing(needed)
    _write(host, name, note, _list_lines(found, mapped, modules))
    return None


def _list_mapped() -> List[str]:
    try:
        mapped = list_mapped()
    except OSError:
        mapped = []
    if mapped:
        return mapped
    raise FactError(
        "what this process has loaded is unknown, as /proc/self/maps cannot be read",
        hint="make /proc readable, or capture with --static",
    )


def _list_new(note: Note, mapped: List[str]) -> Optional[Tuple[List[str], List[str]]]:
    """Return the mapped files, and those of modules, that a note does not explain; None without a note for
    this process.
    """
    if not note.sites or not set(note.needed) <= set(mapped):
        return None
    return note.list_new(mapped), note.list_new(list_module_files(note.lines))


def _is_imported(name: str, finished: Optional[str]) -> bool:
    """Return whether a module is imported, to the end."""
    module = sys.modules.get(name)
    is_running = getattr(getattr(module, "__spec__", None), "_initializing", False)
    return name == finished or (module is not None and not is_running)


def _get_compiler(facts: Tree) -> object:
    return (facts.get("python") or {}).get("compiler")


def _make_name(host: Host, document: Document, state: List[object]) -> str:
    """Return the name of the note: what decides whether files are explained, beside the files."""
    start = host.start_environ()
    variables = [start.get(name) for name in ("LD_PRELOAD", "LD_LIBRARY_PATH", "PYTHONPATH")]
    sites = [entry for entry in host.path if entry.endswith(("site-packages", "dist-packages"))]
    lock = [document["facts"][LOADED], document["policy"], has_overrides_enabled()]
    state = [__version__, sys.executable, sys.version, variables, sites, lock, state]
    return "explained-" + sha256(json.dumps(state, sort_keys=True).encode("ascii")).hexdigest()


def _read(host: Host, name: str) -> str:
    data = read_own_file(host.environ, LOADED, name, SIZE_LIMIT) or b""
    return data.decode("utf-8", "surrogateescape")


def _write(host: Host, name: str, note: Note, lines: List[str]) -> None:
    """Note what is explained, for the next process; without a cache, that is found out again."""
    note.add(lines, time.time_ns())
    write_own_file(host.environ, LOADED, name, os.fsencode(note.format()))


def _list_lines(found: Description, mapped: List[str], modules: List[str]) -> List[str]:
    """Return the lines of a note on files that were described and explained."""
    lines = [get_line(path) for path in mapped if path not in found.unread]
    lines += [get_line(file) if file in found.compared else file for file in modules]
    return [line for line in lines if line is not None]


def _judge(document: Document, live: Snapshot, policy: Optional[str]) -> Report:
    report = judge_here(document, live, policy, overrides=has_overrides_enabled())
    return annotate(report, os.environ)
