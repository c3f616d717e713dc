"""What `envlock images` shows, as JSON values. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict
from typing import Any

from envlock.data.images import BaseSystem, Tables
from envlock.images.candidate import SUBJECTS, Candidate, Value, reason
from envlock.images.choose import Pinned
from envlock.images.reference import DOCKER_HUB, Reference
from envlock.images.sources import cuda, ngc, slim
from envlock.images.wanted import Wanted
from envlock.runtime.release import numbers

LISTING_VERSION = 1


def ranking(
    candidates: Iterable[Candidate], asked: Wanted, pinned: Mapping[Reference, Pinned]
) -> dict[str, Any]:
    """Return the base images for a lock, in their order."""
    return {
        "listing_version": LISTING_VERSION,
        "wanted": asdict(asked),
        "candidates": [
            _row(candidate, asked, pinned.get(candidate.reference)) for candidate in candidates
        ],
    }


def _row(candidate: Candidate, asked: Wanted, found: Pinned | None) -> dict[str, Any]:
    return {
        "route": candidate.route,
        "image": str(candidate.reference),
        "exact": candidate.exact,
        "usable": candidate.usable,
        "holds": _values({name: candidate.holds.get(name, Value()) for name in SUBJECTS}),
        "mismatches": list(candidate.mismatches),
        "python_from": None if candidate.python_from is None else str(candidate.python_from),
        "python_archive": None
        if candidate.python_archive is None
        else asdict(candidate.python_archive),
        "digest": None if found is None else found.reference.digest,
        "manifest": None if found is None else found.manifest,
        "reason": reason(candidate, asked),
    }


def everything(tables: Tables) -> dict[str, Any]:
    """Return every image that is known, the newest first."""
    return {
        "listing_version": LISTING_VERSION,
        "releases": [_release(*image, tables) for image in reversed(list(ngc.images(tables.ngc)))],
        "cuda": [
            {
                "image": str(Reference(DOCKER_HUB, cuda.REPOSITORY, row.tag)),
                "holds": _values(
                    {"cuda": Value(row.cuda), "cudnn": Value(row.cudnn), "nccl": Value(row.nccl)}
                ),
            }
            for row in reversed(tables.cuda.image)
        ],
        "python": [
            {
                "image": str(
                    Reference(DOCKER_HUB, slim.REPOSITORY, f"{row.python}-slim-{row.suite}")
                ),
                "patches": [row.first, row.last],
            }
            for row in sorted(tables.python.slim, key=lambda row: numbers(row.python), reverse=True)
        ],
        "systems": [_system(row) for row in tables.python.system if row.image is not None],
    }


def _system(row: BaseSystem) -> dict[str, Any]:
    own = row.with_python and f"{DOCKER_HUB}/{row.with_python}"
    return {
        "image": f"{DOCKER_HUB}/{row.image}",
        "libc": row.libc,
        "with_python": own,
        "python": row.own,
    }


def _release(release: Any, tag: str, tensorflow: str | None, tables: Tables) -> dict[str, Any]:
    held = ngc.contents(release, tables)
    holds = {
        "tensorflow": Value(tensorflow),
        **{name: held[name] for name in SUBJECTS if name in held},
    }
    return {
        "release": release.release,
        "image": str(Reference(ngc.REGISTRY, ngc.REPOSITORY, tag)),
        "confidence": release.confidence,
        "holds": _values(holds),
        "digests": [row.digest for row in tables.ngc.digest if row.tag == tag and not row.earlier],
    }


def _values(holds: Mapping[str, Value]) -> dict[str, dict[str, Any]]:
    return {name: value._asdict() for name, value in holds.items() if value.version is not None}
