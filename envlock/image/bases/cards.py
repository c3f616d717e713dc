"""Which images of NVIDIA and wheels of TensorFlow run on a GPU, according to the code in them.
Pure.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from difflib import get_close_matches
from typing import Any, NamedTuple

from envlock.data.compatibility import find_failure, find_ptx_cuda, load_compatibility_table
from envlock.data.determinism import resolve_citation
from envlock.data.image_tables import (
    CudaImagesTable,
    Tables,
    WheelBuild,
    find_driver_floor,
    find_oldest_driver,
)
from envlock.image.bases.candidate import Value
from envlock.image.bases.card_names import simplify_name
from envlock.image.bases.drivers import (
    JETPACK,
    TEGRA,
    find_first_cuda,
    find_newest_cuda,
    has_driver,
    is_tegra,
    list_runnable_code,
)
from envlock.image.bases.listing import LISTING_VERSION
from envlock.image.bases.reference import Reference
from envlock.image.bases.sources import ngc
from envlock.runtime.cuda.gpu_code import NATIVE, NONE, judge
from envlock.runtime.errors import UsageError
from envlock.runtime.release import minor, parse_release

YES, DRIVER, UNKNOWN, NO = "yes", "driver", "unknown", "no"
"""With machine code; with PTX that the driver compiles; no source states it; not at all."""

_ASK = "`nvidia-smi --query-gpu=compute_cap --format=csv` prints it"
ORDER = (YES, DRIVER, UNKNOWN, NO)
_DRIVER = re.compile(r"(?:driver )?(\d{3}(?:\.\d{2,3}){1,2})")
_CAPABILITY = re.compile(r"(?:(?:sm|compute)_)?([0-9]{1,2})\.?([0-9])[af]?")


def split_gpu(text: str) -> tuple[str | None, str | None]:
    """Return the GPU and the driver in `H100`, `535.104.05` or both, as nvidia-smi prints them:
    `NVIDIA H100 PCIe, 535.104.05`.
    """
    start, _, end = text.rpartition(",")
    match = _DRIVER.fullmatch(end.strip().lower())
    return (text, None) if match is None else (start.strip() or None, match[1])


def find_capability(text: str, tables: Tables) -> str:
    """Return the compute capability for `sm_120`, `12.0`, or the name of a card such as `RTX 5090`.

    Raises:
        UsageError: no table has such a card, or it is the name of several.
    """
    match = _CAPABILITY.fullmatch(text.strip().lower())
    if match is not None:
        return f"{match[1]}.{match[2]}"
    if re.fullmatch(r"(nvidia )?(jetson|jetpack [\d.]+)", text.strip().lower()):
        raise UsageError(
            f"`{text}` names no single GPU", hint=f"name one, such as Jetson Orin NX. {JETPACK}"
        )
    wanted = simplify_name(text)
    known: dict[str, str] = {}
    found = []
    for row in tables.cuda.card:
        for name in row.names:
            key = simplify_name(name)
            known.setdefault(key, f"{name.removeprefix('NVIDIA ')} ({row.compute_capability})")
            # What NVIDIA lists under a name counts more than a chip that somebody sold under it.
            if key == wanted and row.chip is None:
                return row.compute_capability
            if key == wanted and row.compute_capability not in found:
                found.append(row.compute_capability)
    if len(found) == 1:
        return found[0]
    if found:
        raise UsageError(
            f"`{text}` is the name of GPUs of several compute capabilities: {', '.join(found)}",
            hint=f"name the one instead: {_ASK}",
        )
    hint = f"name its compute capability, such as sm_120: {_ASK}"
    near = sorted((key for key in known if len(wanted) > 2 and wanted in key), key=len)
    near = (near or get_close_matches(wanted, known))[:3]
    if near:
        hint += f"; the nearest known: {', '.join(known[key] for key in near)}"
    raise UsageError(f"unknown GPU `{text}`", hint=hint)


class _Verdict(NamedTuple):
    """How software runs on a GPU, why, and the source of that."""

    runs: str
    why: str
    source: str


def list_runnable(
    capability: str | None, tables: Tables, driver: str | None = None
) -> dict[str, Any]:
    """Return the images and wheels that run on GPUs of a compute capability, with a driver or on
    both, those that do not, and why, as JSON values.
    """
    gpu, answers = (
        None,
        [*_describe_images(capability, tables), *_describe_wheels(capability, tables)],
    )
    if capability is not None:
        gpu = {
            "compute_capability": capability,
            "cards": [
                name
                for row in tables.cuda.card
                # Those of a chip are dozens, as drivers spell them.
                if row.compute_capability == capability and row.chip is None
                for name in row.names
            ],
            "first_cuda": find_first_cuda(capability, tables.cuda),
        }
    document: dict[str, Any] = {"listing_version": LISTING_VERSION, "gpu": gpu, "driver": None}
    if driver is not None:
        newest = find_newest_cuda(driver, tables.cuda)
        document["driver"] = {"version": driver, "newest_cuda": newest}
        answers = [{**each, **_add_driver(each, driver, tables.cuda)} for each in answers]
    answers.sort(key=lambda answer: ORDER.index(answer["runs"]))
    return {**document, "answers": answers}


def _add_driver(answer: dict[str, Any], driver: str, table: CudaImagesTable) -> dict[str, Any]:
    """Return what changes of an answer under a driver."""
    cuda = answer["cuda"]["version"]
    floor = find_driver_floor(cuda, table) if cuda is not None else None
    oldest = find_oldest_driver(cuda, table) if cuda is not None else None
    changed: dict[str, Any] = {}
    if floor is None or oldest is None:
        runs, why = UNKNOWN, "No source states which driver its CUDA needs."
    else:
        changed["source"] = resolve_citation(floor.source, table.evidence)
        if has_driver(driver, floor.driver):
            runs, why = YES, "Its CUDA came with this driver or an older one."
        elif not has_driver(driver, oldest):
            runs, why = NO, f"Its CUDA needs driver {oldest} or newer."
            if answer["kind"] == "image":
                why = f"{why[:-1]}; on data-centre GPUs the cuda-compat of the image may suffice."
        elif answer["runs"] == DRIVER:
            runs = NO
            why = f"It holds only PTX for this GPU, which needs driver {floor.driver} or newer."
        else:
            runs = YES
            why = (
                "Its CUDA is newer than this driver, which runs it by minor version compatibility "
                f"({oldest} or newer), but no PTX."
            )
    if ORDER.index(runs) > ORDER.index(answer["runs"]):
        return {"runs": runs, "why": why, **changed}
    return {"why": f"{answer['why']} {why}".strip()} if answer["runs"] in {YES, DRIVER} else {}


def _describe_images(capability: str | None, tables: Tables) -> Iterator[dict[str, Any]]:
    """Yield NVIDIA's images, the newest first."""
    first_cuda = find_first_cuda(capability, tables.cuda) if capability is not None else None
    # If a release is too old for the GPU, all earlier ones are, even if their CUDA is unknown.
    is_too_old = False
    for release, tag, tensorflow in reversed(list(ngc.list_images(tables.ngc))):
        contents = ngc.describe_contents(release, tables)
        cuda, oldest = contents["cuda"], contents["compute_capability"].version
        if _is_older(cuda.version, first_cuda):
            is_too_old = True
        if capability is None:
            runs, why = YES, ""
        elif is_tegra(capability, tables.cuda):
            runs, why = NO, TEGRA
        elif oldest is not None and parse_release(capability) < parse_release(oldest):
            runs, why = NO, f"It is made for compute capability {oldest} and later."
        elif is_too_old:
            runs, why = NO, _explain_missing_code(first_cuda)
        elif first_cuda is None or cuda.version is None:
            runs, why = UNKNOWN, "No source states whether its CUDA makes code for this GPU."
        elif cuda.expected:
            runs = YES
            why = (
                f"{_explain_code(cuda.version, capability, tables)}, by other images of that month."
            )
        else:
            runs, why = YES, f"{_explain_code(cuda.version, capability, tables)}."
        yield {
            "kind": "image",
            "name": str(Reference(ngc.REGISTRY, ngc.REPOSITORY, tag)),
            "tensorflow": tensorflow,
            "cuda": cuda._asdict(),
            "runs": runs,
            "why": why,
            "source": resolve_citation(release.source, tables.ngc.evidence),
        }


def _is_older(cuda: str | None, first_cuda: str | None) -> bool:
    """Return whether a CUDA is known to be older than the first for a GPU."""
    if cuda is None or first_cuda is None:
        return False
    return parse_release(cuda) < parse_release(first_cuda)


def _explain_code(cuda: str, capability: str, tables: Tables) -> str:
    """Return how the machine code of a CUDA runs on a GPU, without the full stop."""
    start = "Its CUDA makes machine code for"
    compiled = [
        row.compute_capability
        for row in list_runnable_code(capability, tables.cuda)
        if parse_release(row.cuda) <= parse_release(cuda)[:2]
    ]
    if not compiled or compiled[-1] == capability:
        return f"{start} this GPU"
    return f"{start} compute capability {compiled[-1]}, which this GPU runs"


def _explain_missing_code(first_cuda: str | None) -> str:
    return f"Its CUDA is older than {first_cuda}, the first that makes machine code for this GPU."


def _describe_wheels(capability: str | None, tables: Tables) -> Iterator[dict[str, Any]]:
    """Yield the wheels of the package index that are built for CUDA, the newest first."""
    for build in reversed(tables.builds.build):
        yield {
            "kind": "wheel",
            "name": f"tensorflow {minor(build.tensorflow)}",
            "tensorflow": build.tensorflow,
            "cuda": Value(build.cuda)._asdict(),
            **_judge_wheel(build, capability, tables)._asdict(),
        }


def _judge_wheel(build: WheelBuild, capability: str | None, tables: Tables) -> _Verdict:
    targets: list[str] | None = None
    source = resolve_citation(build.source, tables.builds.evidence)
    if capability is None:
        return _Verdict(YES, "", source)
    if is_tegra(capability, tables.cuda):
        return _Verdict(NO, TEGRA, source)
    for row in tables.builds.code:
        if minor(build.tensorflow) in row.tensorflow:
            targets, source = row.targets, resolve_citation(row.source, tables.builds.evidence)
            break
    verdict = judge(targets or [], capability, find_ptx_cuda(build.tensorflow) or build.cuda)
    if verdict.kind == NATIVE:
        return _Verdict(YES, verdict.sentence, source)
    # A known failure of this version on this GPU counts more than the code in it.
    failure = find_failure(build.tensorflow, capability)
    if failure is not None:
        why = f"{failure.why} What works: {failure.works}."
        return _Verdict(
            NO, why, resolve_citation(failure.source, load_compatibility_table().evidence)
        )
    if targets is not None:
        runs = NO if verdict.kind == NONE else DRIVER
        return _Verdict(runs, verdict.sentence, source)
    first_cuda = find_first_cuda(capability, tables.cuda)
    if _is_older(build.cuda, first_cuda):
        return _Verdict(NO, _explain_missing_code(first_cuda), source)
    return _Verdict(UNKNOWN, "No source states for which GPUs it holds code.", source)
