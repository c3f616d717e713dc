"""The lists that `envlock images` prints, as JSON values. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict

from envlock.data.image_tables import BaseSystem, CudaImage, SlimImages, Tables
from envlock.image.bases.candidate import SUBJECTS, Candidate, Value, explain_candidate
from envlock.image.bases.needs import BaseNeeds
from envlock.image.bases.reference import DOCKER_HUB, Reference
from envlock.image.bases.sources import cuda, ngc, slim
from envlock.runtime.release import parse_release

LISTING_VERSION = 1


def describe_ranking(candidates: Iterable[Candidate], needs: BaseNeeds) -> dict[str, object]:
    """Return the base images for a lockfile, in their order."""
    wanted = asdict(needs)
    # The lockfile has the same.
    del wanted["libraries"]
    return {
        "listing_version": LISTING_VERSION,
        "wanted": wanted,
        "candidates": [_describe_candidate(candidate, needs) for candidate in candidates],
    }


def _describe_candidate(candidate: Candidate, needs: BaseNeeds) -> dict[str, object]:
    python_from = str(candidate.python_from) if candidate.python_from is not None else None
    archive = asdict(candidate.python_archive) if candidate.python_archive is not None else None
    return {
        "route": candidate.route,
        "image": str(candidate.reference),
        "exact": candidate.exact,
        "usable": candidate.usable,
        "holds": _describe_values({name: candidate.holds.get(name, Value()) for name in SUBJECTS}),
        "mismatches": list(candidate.mismatches),
        "python_from": python_from,
        "python_archive": archive,
        "reason": explain_candidate(candidate, needs),
    }


def describe_all(tables: Tables) -> dict[str, object]:
    """Return every known image, the newest first."""
    pythons = sorted(tables.python.slim, key=lambda row: parse_release(row.python), reverse=True)
    return {
        "listing_version": LISTING_VERSION,
        "releases": [
            _describe_release(image, tables)
            for image in reversed(list(ngc.list_images(tables.ngc)))
        ],
        "cuda": [_describe_cuda(row) for row in reversed(tables.cuda.image)],
        "python": [_describe_python(row) for row in pythons],
        "systems": [_describe_system(row) for row in tables.python.system if row.image is not None],
    }


def _describe_release(image: ngc.NgcImage, tables: Tables) -> dict[str, object]:
    release = image.release
    contents = ngc.describe_contents(release, tables)
    holds = {"tensorflow": Value(image.tensorflow)}
    for name in SUBJECTS:
        if name in contents:
            holds[name] = contents[name]
    digests = [row.digest for row in tables.ngc.digest if row.tag == image.tag and not row.earlier]
    return {
        "release": release.release,
        "image": str(Reference(ngc.REGISTRY, ngc.REPOSITORY, image.tag)),
        "confidence": release.confidence,
        "holds": _describe_values(holds),
        "digests": digests,
    }


def _describe_cuda(row: CudaImage) -> dict[str, object]:
    holds = {"cuda": Value(row.cuda), "cudnn": Value(row.cudnn), "nccl": Value(row.nccl)}
    return {
        "image": str(Reference(DOCKER_HUB, cuda.REPOSITORY, row.tag)),
        "holds": _describe_values(holds),
    }


def _describe_python(row: SlimImages) -> dict[str, object]:
    return {
        "image": str(Reference(DOCKER_HUB, slim.REPOSITORY, f"{row.python}-slim-{row.suite}")),
        "patches": [row.first, row.last],
    }


def _describe_system(row: BaseSystem) -> dict[str, object]:
    with_python = f"{DOCKER_HUB}/{row.with_python}" if row.with_python is not None else None
    return {
        "image": f"{DOCKER_HUB}/{row.image}",
        "libc": row.libc,
        "with_python": with_python,
        "python": row.own,
    }


def _describe_values(holds: Mapping[str, Value]) -> dict[str, dict[str, object]]:
    """Return the versions that are known, by their subjects."""
    values = {}
    for name, value in holds.items():
        if value.version is not None:
            values[name] = value._asdict()
    return values
