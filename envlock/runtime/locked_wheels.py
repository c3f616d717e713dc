"""Packages that were installed from the wheel that a lockfile names, although the locked ones came
from elsewhere.

A lockfile records a package from a checkout, a folder or a disk with that origin, and with the
digest of its source. When its wheel is installed elsewhere, the origin differs and the files are the
same, as its RECORD shows. That is stronger evidence, so its origin then counts as the locked one; so
does its source, if the wheel was built from the locked source. A wheel that came from an index once and from
a disk later is the same wheel, too.
"""

from __future__ import annotations

from envlock.runtime.collectors import Snapshot
from envlock.runtime.distributions import find_distributions
from envlock.runtime.editable_installs import list_namespace_hooks
from envlock.runtime.errors import FactError
from envlock.runtime.files.record_rows import get_common_content, hash_content, parse_rows
from envlock.runtime.loaded.owners import describe_content
from envlock.runtime.startup import make_key
from envlock.runtime.tooling import add_tooling

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Callable, Iterable, List

    from envlock.runtime.facts import Document, Tree
    from envlock.runtime.host import Host

OF_ORIGIN = ("origin", "source")
"""Facts of a package that say where it came from."""


def complete_packages(lock: Document, live: Snapshot, host: Callable[[], Host]) -> Snapshot:
    """Return a snapshot with locked origins (`restore_locked_origins`), which also names tooling (`add_tooling`)."""
    return add_tooling(lock, restore_locked_origins(lock, live, host), host)


def restore_locked_origins(lock: Document, live: Snapshot, host: Callable[[], Host]) -> Snapshot:
    """Return a snapshot in which packages with the files of their locked wheels have their locked
    origins.

    Only the RECORDs of packages with another origin are read; `host`, which has them, is called
    only then.
    """
    live = _restore_by_content(lock, live, host)
    names = _list_of_another_origin(lock, live)
    if not names:
        return live
    identities = lock["identity"]["packages"]
    locked = lock["facts"]["packages"]
    distributions = find_distributions(host())
    packages = dict(live.facts["packages"])
    namespaces: List[str] = []
    for name in names:
        if name not in distributions:
            continue
        record = distributions[name].read("RECORD")
        if record is None:
            continue
        digest = _hash_record(record)
        # A wheel that was built here from the sources of the package lists other files: `built`.
        if digest not in (identities[name]["content"], identities[name].get("built")):
            continue
        packages[name] = {**packages[name], "origin": locked[name].get("origin")}
        if "source" not in locked[name]:
            # uv notes no hash of a wheel from a disk, so its files stand for it.
            packages[name].pop("source", None)
        elif _is_of_source(identities[name], locked[name], digest):
            packages[name]["source"] = locked[name]["source"]
        if (locked[name].get("origin") or {}).get("editable"):
            namespaces += list_namespace_hooks(distributions[name])
    facts = _leave_out_hooks(live.facts, namespaces)
    return live.with_facts({**facts, "packages": packages})


def _restore_by_content(lock: Document, live: Snapshot, host: Callable[[], Host]) -> Snapshot:
    """Return a snapshot in which wheels with the locked files have their locked origins."""
    contents = (lock["facts"].get("loaded") or {}).get("packages") or {}
    names = _filter_by_origin(lock, live, contents)
    if not names:
        return live
    distributions = find_distributions(host())
    packages = dict(live.facts["packages"])
    for name in names:
        if name in distributions and describe_content(distributions[name]) == contents[name]:
            others = {key: value for key, value in packages[name].items() if key not in OF_ORIGIN}
            locked = lock["facts"]["packages"][name]
            packages[name] = {**others, **{key: locked[key] for key in OF_ORIGIN if key in locked}}
    return live.with_facts({**live.facts, "packages": packages})


def _leave_out_hooks(facts: Tree, names: List[str]) -> Tree:
    """Return facts without these .pth files: the locked development installs of their packages
    create the same namespaces by themselves.
    """
    python = facts.get("python") or {}
    startup = python.get("startup") or {}
    if not names or not isinstance(startup.get("pth"), dict):
        return facts
    keys = [make_key(name) for name in names]
    others = {key: value for key, value in startup["pth"].items() if key not in keys}
    return {**facts, "python": {**python, "startup": {**startup, "pth": others}}}


def _is_of_source(identity: Document, locked: Document, digest: str) -> bool:
    """Return whether files with this digest are those of the locked source: the files that were
    installed, or those of a wheel that was built from it.
    """
    if digest == identity.get("built"):
        return bool(identity.get("source") == locked["source"])
    return True


def _list_of_another_origin(lock: Document, live: Snapshot) -> List[str]:
    """Return the packages whose wheel the lockfile names, and whose origin is not the locked one."""
    identities = (lock.get("identity") or {}).get("packages") or {}
    return _filter_by_origin(
        lock, live, [name for name, entry in identities.items() if entry.get("wheel")]
    )


def _filter_by_origin(lock: Document, live: Snapshot, names: Iterable[str]) -> List[str]:
    """Return those of some packages whose origin is not the locked one."""
    locked = lock["facts"].get("packages")
    here = live.facts.get("packages")
    if not isinstance(locked, dict) or not isinstance(here, dict):
        return []
    both = [
        name
        for name in names
        if isinstance(locked.get(name), dict) and isinstance(here.get(name), dict)
    ]
    return [name for name in both if locked[name].get("origin") != here[name].get("origin")]


def _hash_record(text: str) -> str:
    """Return the digest of the files that a RECORD lists; empty if the text is not a RECORD."""
    try:
        return hash_content(get_common_content(parse_rows(text)))
    except FactError:
        return ""
