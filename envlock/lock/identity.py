"""The models of `identity`: which file of an index each distribution was installed from, and how that is known."""

from typing import Annotated, Literal

from pydantic import Field, model_validator

from envlock.lock.fields import Count, PackageName, Sha256, Strict, Text, Version

WheelName = Annotated[str, Field(max_length=300, pattern=r"^[A-Za-z0-9][A-Za-z0-9_.+!-]*\.whl$")]
WebUrl = Annotated[
    str, Field(max_length=1000, pattern=r"^https?://[A-Za-z0-9.:\[\]-]+(/[A-Za-z0-9._~!*'();:&=+,%/@-]*)?$")
]


class WheelFile(Strict):
    """One file of an index; size in bytes.

    `url` and `index` are without credentials and queries, and null where the file or its index is on a disk.
    """

    name: WheelName
    sha256: Sha256
    size: Count
    url: WebUrl | None
    index: WebUrl | None


class PackageIdentity(Strict):
    """What is known of the file that a distribution was installed from.

    `content` is the digest of the list of its files and their hashes (envlock/packages/record.py), null where it has
    no such list. `proof` says how `wheel` is known to be that file: its RECORD lists exactly the installed files,
    and its sha256 was computed from all its bytes (`file`) or is what the index says (`record`). Where there is no
    wheel, `reason` says why.
    """

    version: Version | None
    content: Sha256 | None
    origin: Literal["index", "url", "vcs", "editable", "local", "conda", "unknown"]
    proof: Literal["file", "record"] | None
    wheel: WheelFile | None
    reason: Text | None

    @model_validator(mode="after")
    def _proven_or_reasoned(self) -> "PackageIdentity":
        if (self.wheel is None) != (self.proof is None) or (self.wheel is None) == (self.reason is None):
            raise ValueError("it must have a wheel and a proof, or a reason")
        return self


class Identity(Strict):
    """Every distribution of `facts.packages`, as `envlock hash` found it."""

    packages: dict[PackageName, PackageIdentity]
