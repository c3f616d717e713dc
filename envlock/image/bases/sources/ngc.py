"""NVIDIA's TensorFlow images: their TensorFlow, Python and CUDA are used unchanged. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from envlock.data.image_tables import BaseSystem, NgcRelease, NgcTable, Tables
from envlock.image.bases.candidate import SAME, Candidate, Value, compare_versions
from envlock.image.bases.needs import BaseNeeds
from envlock.image.bases.reference import Reference
from envlock.runtime.release import minor, parse_release

REGISTRY, REPOSITORY = "nvcr.io", "nvidia/tensorflow"
FIRST_ARM64 = "21.10"
"""The earliest release for which a source mentions images for arm64."""

FIELDS = ("ubuntu", "python", "cuda", "cudnn", "nccl", "compute_capability")
HOW_SURE = {
    "medium": "; likely, but not confirmed by NVIDIA",
    "low": "; known from a single source",
}


class NgcImage(NamedTuple):
    """One of NVIDIA's images; its TensorFlow is None if no source states it."""

    release: NgcRelease
    tag: str
    tensorflow: str | None


def list_candidates(needs: BaseNeeds, tables: Tables) -> Iterable[Candidate]:
    """Return the release of the locked label, and those with the nearest TensorFlow."""
    if not needs.gpu or needs.tensorflow is None:
        return []
    images = [image for image in list_images(tables.ngc) if _is_same_line(image.tag, needs)]
    likenesses = {}
    for image in images:
        if image.tensorflow is not None:
            version = Value(minor(image.tensorflow))
            likenesses[image.tag] = compare_versions(needs.tensorflow, version)
    closest = max(likenesses.values(), default=None)
    found = []
    for image in images:
        is_closest = image.tensorflow is not None and likenesses[image.tag] == closest
        if is_closest or _has_label(image.release, needs):
            found.append(_make_candidate(image, needs, tables))
    return found


def list_images(table: NgcTable) -> Iterator[NgcImage]:
    """Yield every image, in the order of the releases."""
    for release in table.release:
        for tag in release.tags:
            tensorflow = release.tf2 if "-tf2-" in tag else release.tf1
            yield NgcImage(release, tag, tensorflow)


def describe_contents(release: NgcRelease, tables: Tables) -> dict[str, Value]:
    """Return the versions in an image of this release.

    A version is expected if only neighbouring releases, or its Ubuntu, show it.
    """
    siblings = [row for row in tables.ngc.sibling if row.release == release.release]
    contents = {}
    for field in FIELDS:
        version = getattr(release, field)
        if version is not None:
            contents[field] = Value(version)
        else:
            versions = [getattr(row, field) for row in siblings]
            contents[field] = Value(_merge_versions(versions), expected=True)
    if contents["ubuntu"].version is None:
        contents["ubuntu"] = Value(_infer_ubuntu(release, tables.ngc), expected=True)
    system = _find_system(contents["ubuntu"].version, tables)
    if system is None and contents["python"].version is not None:
        system = _find_system_with(contents["python"].version, tables)
        ubuntu = system.name.removeprefix("ubuntu") if system is not None else None
        contents["ubuntu"] = Value(ubuntu, expected=True)
    libc = None
    if system is not None:
        libc = system.libc
        if contents["python"].version is None:
            contents["python"] = Value(system.python, expected=True)
    contents["libc"] = Value(libc, expected=contents["ubuntu"].expected)
    return contents


def _find_system(ubuntu: str | None, tables: Tables) -> BaseSystem | None:
    for row in tables.python.system:
        if row.name == f"ubuntu{ubuntu}":
            return row
    return None


def _find_system_with(python: str, tables: Tables) -> BaseSystem | None:
    """Return the first system whose own Python has this version."""
    for row in tables.python.system:
        if row.python == python:
            return row
    return None


def _merge_versions(versions: Iterable[str | None]) -> str | None:
    """Return the longest version, of which the others are prefixes; None if they contradict each
    other.
    """
    known = [version for version in versions if version is not None]
    longest = max(known, key=len, default=None)
    if all(f"{longest}.".startswith(f"{version}.") for version in known):
        return longest
    return None


def _infer_ubuntu(release: NgcRelease, table: NgcTable) -> str | None:
    """Return the Ubuntu of the releases before and after, if it is the same."""
    known = {row.release: row.ubuntu for row in table.sibling if row.ubuntu}
    known |= {row.release: row.ubuntu for row in table.release if row.ubuntu}
    before = [name for name in known if parse_release(name) < parse_release(release.release)]
    after = [name for name in known if parse_release(name) > parse_release(release.release)]
    if not before or not after:
        return None
    earlier, later = known[max(before, key=parse_release)], known[min(after, key=parse_release)]
    return earlier if earlier == later else None


def _is_same_line(tag: str, needs: BaseNeeds) -> bool:
    """Return whether an image has the locked line of TensorFlow, 1 or 2."""
    return _has_tensorflow_2(needs) == ("-tf2-" in tag)


def _has_tensorflow_2(needs: BaseNeeds) -> bool:
    return parse_release(needs.tensorflow or "")[:1] >= (2,)


def _has_label(release: NgcRelease, needs: BaseNeeds) -> bool:
    """Return whether a release has the locked build of TensorFlow."""
    if needs.label is None or needs.label not in release.labels:
        return False
    version = release.tf2 if _has_tensorflow_2(needs) else release.tf1
    if version is None:
        return True
    return compare_versions(needs.tensorflow, Value(version)).grade == SAME


def _make_candidate(image: NgcImage, needs: BaseNeeds, tables: Tables) -> Candidate:
    release = image.release
    contents = describe_contents(release, tables)
    lowest = contents.pop("compute_capability").version
    ubuntu = contents.pop("ubuntu")
    os_release = ubuntu.version
    if os_release:
        os_release = f"ubuntu {os_release}"
    contents["os"] = Value(os_release, ubuntu.expected)
    exact = _has_label(release, needs)
    months_apart = 0
    if not exact and needs.label is not None:
        months_apart = _count_months(release.release, needs.label.removeprefix("nv"))
    obstacles = []
    is_before_arm64 = parse_release(release.release) < parse_release(FIRST_ARM64)
    if needs.platform == "linux/arm64" and is_before_arm64:
        obstacles.append(f"No image for arm64 is known before {FIRST_ARM64}.")
    return Candidate(
        route="ngc",
        reference=Reference(REGISTRY, REPOSITORY, image.tag),
        holds={"tensorflow": Value(image.tensorflow), **contents},
        lead=_describe_build(image, exact, needs),
        exact=exact,
        months_apart=months_apart,
        obstacles=tuple(obstacles),
        notes=tuple(_list_notes(exact, needs, tables.ngc)),
        lowest=lowest,
        newest=parse_release(release.release),
    )


def _count_months(release: str, label: str) -> int:
    """Return the months between a release and that of a label; 0 for a label without a month."""
    left, right = parse_release(release)[:2], parse_release(label)[:2]
    if len(right) < 2:
        return 0
    return abs((left[0] - right[0]) * 12 + left[1] - right[1])


def _describe_build(image: NgcImage, exact: bool, needs: BaseNeeds) -> str:
    name = f"NVIDIA's release {image.release.release}"
    if not exact:
        unsure = HOW_SURE.get(image.release.confidence or "", "")
        return f"{name} has NVIDIA's build of TensorFlow {image.tensorflow}{unsure}."
    if image.tensorflow is None:
        return (
            f"{name} has the locked build {needs.label}, although no source names its TensorFlow."
        )
    has_month = len(parse_release((needs.label or "").removeprefix("nv"))) >= 2
    if not has_month:
        return (
            f"{name} is one of several with the locked build {needs.label} "
            f"of TensorFlow {needs.tensorflow}."
        )
    return f"{name} has the locked build {needs.label} of TensorFlow {needs.tensorflow}."


def _list_notes(exact: bool, needs: BaseNeeds, table: NgcTable) -> Iterator[str]:
    if needs.label is None:
        yield "The locked build is not NVIDIA's: its kernels, and so its bits, differ."
    elif not exact and any(needs.label in release.labels for release in table.release):
        yield f"The locked build is another one, {needs.label}."
    elif not exact:
        newest = table.release[-1].release
        yield f"No known release has the locked build {needs.label}; the newest is {newest}."
