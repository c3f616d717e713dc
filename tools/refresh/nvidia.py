"""NVIDIA's images: those of CUDA by their Dockerfiles; drivers of CUDA and digests of TensorFlow images by tables of others."""

from __future__ import annotations

import io
import json
import re
import tarfile
from typing import Any

from envlock.runtime.errors import OutsideError
from envlock.runtime.release import parse_release
from refresh.rows import Asked, Found, Row, columns
from refresh.web import Web, unpack

IMAGES = "https://raw.githubusercontent.com/triton-inference-server/server/main/docs/introduction/compatibility.md"
TREE = "https://gitlab.com/nvidia/container-images/cuda/-/archive/master/cuda-master.tar.gz"
DIGESTS = "https://raw.githubusercontent.com/singularityhub/shpc-registry/main/nvcr.io/nvidia/tensorflow/container.yaml"
IMAGE = re.compile(
    r"^\| (\d\d\.\d\d) .* \| (\d+\.\d+\.\d+)(?:\.\d+)? +\| (\d{3}(?:\.\d+)+) +\|", re.MULTILINE
)
LINE = re.compile(r"\d\d\.\d\d(\.\d+)?-tf\d-py3")
DIGEST = re.compile(r"^  (\S+): (sha256:[0-9a-f]{64})$", re.MULTILINE)
DOCKERFILE = re.compile(
    r".*?\bdist/(end-of-life/)?([\d.]+)/ubuntu(\d\d)(\d\d)/runtime/(cudnn\d*)/Dockerfile"
)
CUDNN = re.compile(r"^ENV NV_CUDNN_VERSION[ =]([\d.]+)", re.MULTILINE)
NCCL = re.compile(r"^ENV NV_LIBNCCL_PACKAGE_VERSION[ =]([\d.]+)", re.MULTILINE)
SINCE = (13, 0)
"""Images with an older CUDA have drivers that its release notes do not name, such as those of its development."""


def ask_images(web: Web, table: dict[str, Any], day: str) -> Found:
    """Return the images of cuda_images.toml, by the Dockerfiles that they are built from."""
    texts = json.loads(web.get(TREE, read_tree))
    commit, rows = texts.pop("commit"), []
    oldest = parse_release(table["image"][0]["cuda"])
    for path, text in texts.items():
        match = DOCKERFILE.fullmatch(path)
        if match is None or parse_release(match[2]) < oldest:
            continue
        ended, cuda, *ubuntu, token = match.groups()
        cudnn = CUDNN.search(text)
        nccl = NCCL.search(texts.get(path.replace(f"/{token}/", "/"), ""))
        if cudnn is None:
            raise OutsideError(f"{path} names no cuDNN", hint=f"look at {TREE}")
        row: dict[str, Any] = {"cuda": cuda, "ubuntu": ".".join(ubuntu), "token": token}
        row |= {"cudnn": cudnn[1]} | ({"nccl": nccl[1]} if nccl else {})
        row |= {"arm64": True} if "base-arm64" in text else {}
        row |= {"end_of_life": True} if ended else {}
        rows.append({**row, "source": f"tree: commit {commit}, asked on {day}"})
    if not rows:
        raise OutsideError(f"{TREE} has no image with cuDNN", hint="look at it")
    found = Found()
    grows = ("nccl", "arm64", "end_of_life")
    found.lists = [
        Asked("image", rows, columns("cuda", "ubuntu", "token"), _order_image, "tree", grows)
    ]
    newest = max((row["cuda"] for row in rows), key=parse_release)
    found.through = max(newest, table["horizon"]["through"], key=parse_release)
    return found


def read_tree(body: bytes) -> str:
    """Return the commit of an archive of that repository, and its Dockerfiles by path."""
    texts = unpack(body, lambda name: "/runtime/" in name and name.endswith("/Dockerfile"))
    with tarfile.open(fileobj=io.BytesIO(body), mode="r:gz") as archive:
        return json.dumps({"commit": archive.pax_headers.get("comment", "unknown"), **texts})


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
    return Found([Asked("driver", rows, columns("cuda"), _order)], moves_horizon=False)


def ask_digests(web: Web, table: dict[str, Any], day: str) -> Found:
    """Return the digests of ngc_tensorflow.toml: of tags that a release has."""
    tags = {tag for row in table["release"] for tag in row["tags"]}
    listed = DIGEST.findall(web.get(DIGESTS).partition("\ntags:\n")[2])
    rows = [
        {"tag": tag, "digest": digest, "source": f"shpc, asked on {day}"}
        for tag, digest in listed
        if tag in tags
    ]
    if not rows:
        raise OutsideError(f"{DIGESTS} is not the list of tags", hint="look at it")
    new = sorted(tag for tag, _ in listed if LINE.fullmatch(tag) and tag not in tags)
    found = Found([Asked("digest", rows, _get_tag, _order_tag)], moves_horizon=not new)
    found.decide = [f"{tag} is a tag of NVIDIA's, and no release has it" for tag in new]
    return found


def _order_image(row: Row) -> tuple[tuple[int, ...], ...]:
    return parse_release(row["cuda"]), parse_release(row["ubuntu"])


def _order(row: Row) -> tuple[int, ...]:
    return parse_release(row["cuda"])


def _get_tag(row: Row) -> tuple[str, ...]:
    """Return the tag; a digest that it had earlier, or that has none, is another row."""
    earlier = row["digest"] if row.get("earlier") or "tag" not in row else ""
    return row.get("tag", ""), earlier


def _order_tag(row: Row) -> tuple[int, ...]:
    return parse_release(row.get("tag", "99"))[:2]
