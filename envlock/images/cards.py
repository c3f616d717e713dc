"""What runs on a GPU: NVIDIA's images and the wheels of TensorFlow, by the code that they hold. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from envlock.data.compatibility import compatibility_table, failing, ptx_cuda
from envlock.data.determinism import cited
from envlock.data.images import Tables, WheelBuild
from envlock.images.candidate import Value
from envlock.images.listing import LISTING_VERSION
from envlock.images.reference import Reference
from envlock.images.sources import ngc
from envlock.runtime.cuda.gpu_code import NATIVE, NONE, judge
from envlock.runtime.errors import UsageError
from envlock.runtime.release import minor, numbers

YES, DRIVER, UNKNOWN, NO = "yes", "driver", "unknown", "no"
"""How something runs: by its machine code; by PTX that the driver compiles; nobody states it; it does not."""

ORDER = (YES, DRIVER, UNKNOWN, NO)
_CAPABILITY = re.compile(r"(?:(?:sm|compute)_)?([0-9]{1,2})\.?([0-9])[af]?")
_BRANDS = re.compile(r"\b(?:nvidia|geforce)\b")


def capability_of(text: str, tables: Tables) -> str:
    """Return the compute capability that is meant: `sm_120`, `12.0`, or the name of a card such as `RTX 5090`.

    Raises:
        UsageError: no table has such a card.
    """
    found = _CAPABILITY.fullmatch(text.strip().lower())
    if found is not None:
        return f"{found[1]}.{found[2]}"
    for row in tables.cuda.card:
        if _plain(text) in map(_plain, row.names):
            return row.compute_capability
    raise UsageError(
        f"unknown GPU `{text}`",
        hint="name its compute capability, such as sm_120: `nvidia-smi --query-gpu=compute_cap --format=csv` prints it",
    )


def _plain(name: str) -> str:
    return " ".join(_BRANDS.sub(" ", name.lower().replace("-", " ")).split())


def what_runs(capability: str, tables: Tables) -> dict[str, Any]:
    """Return what runs on a GPU of a compute capability, and what does not and why, as JSON values."""
    cards = [
        name
        for row in tables.cuda.card
        if row.compute_capability == capability
        for name in row.names
    ]
    rows = [*_images(capability, tables), *_wheels(capability, tables)]
    return {
        "listing_version": LISTING_VERSION,
        "gpu": {
            "compute_capability": capability,
            "cards": cards,
            "first_cuda": _code_since(capability, tables),
        },
        "answers": sorted(rows, key=lambda row: ORDER.index(row["runs"])),
    }


def _code_since(capability: str, tables: Tables) -> str | None:
    """Return the first CUDA whose machine code runs on a GPU: code for a lower minor number runs on the higher ones."""
    asked = numbers(capability)
    rows = [row for row in tables.cuda.gpu if numbers(row.compute_capability)[0] == asked[0]]
    found = [row.cuda for row in rows if numbers(row.compute_capability) <= asked]
    return min(found, key=numbers, default=None)


def _images(capability: str, tables: Tables) -> Iterator[dict[str, Any]]:
    """Yield NVIDIA's images, the newest first; they hold code for the GPUs that their CUDA knows, but the oldest."""
    since, is_past = _code_since(capability, tables), False
    for release, tag, tensorflow in reversed(list(ngc.images(tables.ngc))):
        held = ngc.contents(release, tables)
        cuda, oldest = held["cuda"], held["compute_capability"].version
        is_past = is_past or _is_older(cuda.version, since)
        if oldest is not None and numbers(capability) < numbers(oldest):
            runs, why = NO, f"It is made for compute capability {oldest} and later."
        elif is_past:
            runs, why = NO, _no_code(since)
        elif since is None or cuda.version is None:
            runs, why = UNKNOWN, "No source states whether its CUDA makes code for this GPU."
        else:
            told = ", by other images of that month" if cuda.expected else ""
            runs, why = YES, f"Its CUDA makes machine code for this GPU{told}."
        yield {
            "kind": "image",
            "name": str(Reference(ngc.REGISTRY, ngc.REPOSITORY, tag)),
            "tensorflow": tensorflow,
            "cuda": cuda._asdict(),
            "runs": runs,
            "why": why,
            "source": cited(release.source, tables.ngc.evidence),
        }


def _is_older(cuda: str | None, since: str | None) -> bool:
    return cuda is not None and since is not None and numbers(cuda) < numbers(since)


def _no_code(since: str | None) -> str:
    return f"Its CUDA is older than {since}, the first that makes machine code for this GPU."


def _wheels(capability: str, tables: Tables) -> Iterator[dict[str, Any]]:
    """Yield the wheels of the package index that are built for CUDA, the newest first."""
    for build in reversed(tables.builds.build):
        runs, why, source = _by_code(build, capability, tables)
        yield {
            "kind": "wheel",
            "name": f"tensorflow {minor(build.tensorflow)}",
            "tensorflow": build.tensorflow,
            "cuda": Value(build.cuda)._asdict(),
            "runs": runs,
            "why": why,
            "source": source,
        }


def _by_code(build: WheelBuild, capability: str, tables: Tables) -> tuple[str, str, str]:
    """Return how a wheel runs, why, and who says so."""
    code = next(
        (row for row in tables.builds.code if minor(build.tensorflow) in row.tensorflow), None
    )
    verdict = judge(
        code.targets if code else [], capability, ptx_cuda(build.tensorflow) or build.cuda
    )
    source = cited(code.source if code else build.source, tables.builds.evidence)
    if verdict.kind == NATIVE:
        return YES, verdict.sentence, source
    met = failing(build.tensorflow, capability)
    if met is not None:
        return (
            NO,
            f"{met.why} What works: {met.works}.",
            cited(met.source, compatibility_table().evidence),
        )
    if code is not None:
        return (NO if verdict.kind == NONE else DRIVER), verdict.sentence, source
    since = _code_since(capability, tables)
    if _is_older(build.cuda, since):
        return NO, _no_code(since), source
    return UNKNOWN, "No source states for which GPUs it holds code.", source
