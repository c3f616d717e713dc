"""What tables of others tell of NVIDIA's images: the driver of a CUDA, and digests of its TensorFlow images."""

from __future__ import annotations

import re
from typing import Any

from envlock.runtime.errors import OutsideError
from envlock.runtime.release import parse_release
from refresh.found import Found
from refresh.rows import Asked, Row
from refresh.web import Web

IMAGES = "https://raw.githubusercontent.com/triton-inference-server/server/main/docs/introduction/compatibility.md"
DIGESTS = "https://raw.githubusercontent.com/singularityhub/shpc-registry/main/nvcr.io/nvidia/tensorflow/container.yaml"
IMAGE = re.compile(
    r"^\| (\d\d\.\d\d) .* \| (\d+\.\d+\.\d+)(?:\.\d+)? +\| (\d{3}(?:\.\d+)+) +\|", re.MULTILINE
)
DIGEST = re.compile(r"^  (\S+): (sha256:[0-9a-f]{64})$", re.MULTILINE)
SINCE = (13, 0)
"""Images with an older CUDA have drivers that its release notes do not name, such as those of its development."""


def ask_drivers(web: Web, table: dict[str, Any], day: str) -> Found:
    """Return the drivers of cuda_images.toml, each that of the newest image with its CUDA."""
    newest: dict[str, dict[str, Any]] = {}
    for release, cuda, driver in sorted(IMAGE.findall(web.get(IMAGES))):
        if parse_release(cuda) >= SINCE:
            source = f"triton-matrix: {release}, asked on {day}"
            newest[cuda] = {"cuda": cuda, "driver": driver, "source": source}
    if not newest:
        raise OutsideError(f"{IMAGES} is not the table of Triton's images", hint="look at it")
    rows = list(newest.values())
    asked = Asked("driver", rows, lambda row: (row["cuda"],), _order, "", complete=False)
    return Found([asked], moves_horizon=False)


def ask_digests(web: Web, table: dict[str, Any], day: str) -> Found:
    """Return the digests of ngc_tensorflow.toml: of tags that a release has."""
    tags = {tag for row in table["release"] for tag in row["tags"]}
    _, found, listed = web.get(DIGESTS).partition("\ntags:\n")
    rows = [
        {"tag": tag, "digest": digest, "source": f"shpc, asked on {day}"}
        for tag, digest in DIGEST.findall(listed)
        if tag in tags
    ]
    if not found or not rows:
        raise OutsideError(f"{DIGESTS} is not the list of tags", hint="look at it")
    return Found(
        [Asked("digest", rows, _get_tag, _order_tag, "shpc", complete=False)], moves_horizon=False
    )


def _order(row: Row) -> tuple[int, ...]:
    return parse_release(row["cuda"])


def _get_tag(row: Row) -> tuple[str, ...]:
    """Return the tag; a digest that it had earlier, or that has none, is another row."""
    earlier = row["digest"] if row.get("earlier") or "tag" not in row else ""
    return row.get("tag", ""), earlier


def _order_tag(row: Row) -> tuple[int, ...]:
    return parse_release(row.get("tag", "99"))[:2]
