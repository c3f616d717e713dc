"""NVIDIA's TensorFlow images: TensorFlow, Python and CUDA are in them, and stay as they are. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from envlock.data.images import NgcRelease, NgcTable, Tables
from envlock.images.candidate import SAME, Candidate, Value, likeness
from envlock.images.reference import Reference
from envlock.images.wanted import Wanted
from envlock.runtime.release import minor, numbers

REGISTRY, REPOSITORY = "nvcr.io", "nvidia/tensorflow"
FIRST_ARM64 = "21.10"
"""The earliest release for which anything speaks of images for arm64."""

FIELDS = ("ubuntu", "python", "cuda", "cudnn", "nccl", "compute_capability")
HOW_SURE = {
    "medium": "; likely, but not confirmed by NVIDIA",
    "low": "; known from a single source",
}


def candidates(asked: Wanted, tables: Tables) -> Iterable[Candidate]:
    """Return the release of the lock's label, and those with its TensorFlow, else with the nearest."""
    if not asked.gpu or asked.tensorflow is None:
        return []
    known = [
        (release, tag, tensorflow)
        for release, tag, tensorflow in images(tables.ngc)
        if _line(tag, tensorflow, asked)
    ]
    told = [tensorflow for _, _, tensorflow in known if tensorflow is not None]
    closest = max((likeness(asked.tensorflow, Value(minor(one))) for one in told), default=None)
    return [
        _candidate(release, tag, tensorflow, asked, tables)
        for release, tag, tensorflow in known
        if _labelled(release, asked)
        or (
            tensorflow is not None
            and likeness(asked.tensorflow, Value(minor(tensorflow))) == closest
        )
    ]


def images(table: NgcTable) -> Iterator[tuple[NgcRelease, str, str | None]]:
    """Yield every image: its release, its tag and its TensorFlow."""
    for release in table.release:
        for tag in release.tags:
            yield release, tag, release.tf2 if "-tf2-" in tag else release.tf1


def contents(release: NgcRelease, tables: Tables) -> dict[str, Value]:
    """Return what an image of this release holds; what its siblings and its Ubuntu tell is expected."""
    siblings = [row for row in tables.ngc.sibling if row.release == release.release]
    found = {}
    for field in FIELDS:
        own = getattr(release, field)
        others = [version for row in siblings if (version := getattr(row, field)) is not None]
        found[field] = Value(own) if own is not None else Value(_common(others), expected=True)
    if found["ubuntu"].version is None:
        found["ubuntu"] = Value(_between(release, tables.ngc), expected=True)
    system = next(
        (row for row in tables.python.system if row.name == f"ubuntu{found['ubuntu'].version}"),
        None,
    )
    if system is None and found["python"].version is not None:
        system = next(
            (row for row in tables.python.system if row.python == found["python"].version), None
        )
        found["ubuntu"] = Value(
            system.name.removeprefix("ubuntu") if system else None, expected=True
        )
    found["libc"] = Value(system.libc if system else None, expected=found["ubuntu"].expected)
    if found["python"].version is None and system is not None:
        found["python"] = Value(system.python, expected=True)
    return found


def _common(versions: list[str]) -> str | None:
    """Return what all of them say, as exactly as one of them says it; None when they contradict each other."""
    longest = max(versions, key=len, default=None)
    agree = all(f"{longest}.".startswith(f"{version}.") for version in versions)
    return longest if agree else None


def _between(release: NgcRelease, table: NgcTable) -> str | None:
    """Return the Ubuntu of the releases before and after, where it is the same one."""
    known = {row.release: row.ubuntu for row in table.sibling if row.ubuntu}
    known.update({row.release: row.ubuntu for row in table.release if row.ubuntu})
    before = [name for name in known if numbers(name) < numbers(release.release)]
    after = [name for name in known if numbers(name) > numbers(release.release)]
    if not before or not after:
        return None
    sides = {known[max(before, key=numbers)], known[min(after, key=numbers)]}
    return sides.pop() if len(sides) == 1 else None


def _line(tag: str, tensorflow: str | None, asked: Wanted) -> bool:
    """Whether an image is of the lock's line, TensorFlow 1 or later."""
    second = "-tf2-" in tag
    return (numbers(asked.tensorflow or "")[:1] >= (2,)) == second


def _labelled(release: NgcRelease, asked: Wanted) -> bool:
    if asked.label is None or asked.label not in release.labels:
        return False
    line = release.tf2 if numbers(asked.tensorflow or "")[:1] >= (2,) else release.tf1
    return line is None or likeness(asked.tensorflow, Value(line)).grade == SAME


def _candidate(
    release: NgcRelease, tag: str, tensorflow: str | None, asked: Wanted, tables: Tables
) -> Candidate:
    held = contents(release, tables)
    lowest = held.pop("compute_capability").version
    ubuntu = held.pop("ubuntu")
    held["os"] = Value(ubuntu.version and f"ubuntu {ubuntu.version}", ubuntu.expected)
    exact = _labelled(release, asked)
    late = numbers(release.release) >= numbers(FIRST_ARM64)
    foreign = asked.platform == "linux/arm64" and not late
    return Candidate(
        route="ngc",
        reference=Reference(REGISTRY, REPOSITORY, tag),
        holds={"tensorflow": Value(tensorflow), **held},
        lead=_lead(release, tensorflow, exact, asked),
        exact=exact,
        apart=0
        if exact or asked.label is None
        else _months(release.release, asked.label.removeprefix("nv")),
        obstacles=(f"No image for arm64 is known before {FIRST_ARM64}.",) if foreign else (),
        notes=tuple(_notes(exact, asked, tables.ngc)),
        lowest=lowest,
        newest=numbers(release.release),
    )


def _months(release: str, label: str) -> int:
    """Return how many months lie between a release and that of a label; 0 for a label without a month."""
    one, other = numbers(release)[:2], numbers(label)[:2]
    return abs((one[0] - other[0]) * 12 + one[1] - other[1]) if len(other) == 2 else 0


def _lead(release: NgcRelease, tensorflow: str | None, exact: bool, asked: Wanted) -> str:
    name = f"NVIDIA's release {release.release}"
    if exact and tensorflow is None:
        return (
            f"{name} has the locked build {asked.label}, although no source names its TensorFlow."
        )
    if exact and len(numbers((asked.label or "").removeprefix("nv"))) < 2:
        return f"{name} is one of several with the locked build {asked.label} of TensorFlow {asked.tensorflow}."
    if exact:
        return f"{name} has the locked build {asked.label} of TensorFlow {asked.tensorflow}."
    unsure = HOW_SURE.get(release.confidence or "", "")
    return f"{name} has NVIDIA's build of TensorFlow {tensorflow}{unsure}."


def _notes(exact: bool, asked: Wanted, table: NgcTable) -> Iterator[str]:
    if asked.label is None:
        yield "The locked build is not NVIDIA's: its kernels, and so its bits, differ."
    elif not exact and any(asked.label in release.labels for release in table.release):
        yield f"The locked build is another one, {asked.label}."
    elif not exact:
        yield f"No known release has the locked build {asked.label}; the newest is {table.release[-1].release}."
