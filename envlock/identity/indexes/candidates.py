"""Which files of an index may be the one that was installed: by version, build and tags. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from packaging.tags import Tag, parse_tag
from packaging.utils import InvalidSdistFilename, InvalidWheelFilename, parse_sdist_filename, parse_wheel_filename
from packaging.version import InvalidVersion, Version


@dataclass(frozen=True)
class IndexFile:
    """A file that an index offers, as the index describes it: nothing of this is verified.

    Attributes:
        name: of the file.
        url: where it is; without user and password, but perhaps with a query that holds a signature.
        sha256, size: None where the index does not tell.
        yanked: its maintainers ask not to use it.
        metadata_sha256: of the METADATA file that lies beside it (`.metadata`), if the index tells.
        index_url: of the index.
    """

    name: str
    url: str
    sha256: str | None = None
    size: int | None = None
    yanked: bool = False
    metadata_sha256: str | None = None
    index_url: str = ""


class Choice(NamedTuple):
    """The wheels that may be it, likeliest first; or the reason why there is none."""

    wheels: list[IndexFile]
    reason: str | None


def choose(files: Iterable[IndexFile], name: str, version: str, tags: Sequence[str]) -> Choice:
    """Return the wheels of this version: those of exactly these tags, then those that share one or a Python and ABI.

    The last, since a wheel may be renamed for a wider platform after its WHEEL file was written (auditwheel does).
    """
    offered = list(files)
    if not offered:
        return Choice([], f"{name} is on no index that was asked")
    same = [file for file in offered if _is_version(file.name, version)]
    if not same:
        return Choice([], f"version {version} of {name} is on no index that was asked")
    wanted = frozenset(tag for text in tags for tag in parse_tag(text))
    ranked = sorted((_rank(file, wanted), file) for file in same if file.name.endswith(".whl"))
    wheels = [file for rank, file in ranked if rank[0] < 3]
    if wheels:
        return Choice(wheels, None)
    if ranked:
        return Choice([], f"no wheel of {name} {version} on the index is for {' or '.join(sorted(tags)) or 'its tags'}")
    return Choice([], f"the index has only a source archive of {name} {version}: the wheel was built here")


def _rank(file: IndexFile, wanted: frozenset[Tag]) -> tuple[int, bool, str]:
    tags = parse_wheel_filename(file.name)[3]
    if tags == wanted:
        distance = 0
    elif tags & wanted:
        distance = 1
    else:
        same_abi = {(tag.interpreter, tag.abi) for tag in tags} & {(tag.interpreter, tag.abi) for tag in wanted}
        distance = 2 if same_abi else 3
    return distance, not file.url.startswith("http"), file.name


def _is_version(file: str, version: str) -> bool:
    try:
        found = parse_wheel_filename(file)[1] if file.endswith(".whl") else parse_sdist_filename(file)[1]
        return found == Version(version)
    except (InvalidWheelFilename, InvalidSdistFilename, InvalidVersion):
        return False
