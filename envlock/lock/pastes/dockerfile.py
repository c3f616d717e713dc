"""A Dockerfile: what its last base image, and `pip install` of one version, state. Pure.

What an image holds is in the tables of images; a later line can change it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence

from envlock.data.image_tables import NgcRelease, load_image_tables
from envlock.lock.pastes.pip_lists import read_pins
from envlock.lock.pastes.statement import Line, Statement

_ARG = re.compile(r"ARG +([A-Za-z_]\w{0,60})=[\"']?([\w.:/@-]{1,200})[\"']?", re.ASCII)
_FROM = re.compile(
    r"FROM +(?:--platform=\S+ +)?(\S{1,300})(?: +AS +(\S{1,100}))?(?: *#.*)?",
    re.ASCII | re.IGNORECASE,
)
_USE = re.compile(r"\$(?:\{(\w+)\}|(\w+))", re.ASCII)
_IMAGE = re.compile(r"(?:docker\.io/)?(?:library/)?([a-z0-9./-]+):([\w.-]+)(?:@\S+)?", re.ASCII)
_TENSORFLOW = re.compile(r"(\d+\.\d+\.\d+(?:rc\d+)?)(?:-.*)?", re.ASCII)
_CUDA = re.compile(r"(\d+\.\d+)(?:\.\d+)?(?:-cudnn(\d+))?.*?-(ubuntu\d\d\.04).*", re.ASCII)
_PYTHON = re.compile(r"(3\.\d+(?:\.\d+)?)(?:-slim)?(?:-(\w+))?", re.ASCII)


def read_dockerfile(lines: Sequence[Line]) -> Iterator[Statement]:
    """Yield what the last stage states."""
    values: dict[str, str] = {}
    stages: dict[str, tuple[int, str]] = {}
    base = None
    pins: list[Statement] = []
    for number, text in lines:
        argument = _ARG.fullmatch(text.strip())
        stage = _FROM.fullmatch(text.strip())
        if argument is not None:
            values[argument[1]] = argument[2]
        elif stage is not None:
            image = _USE.sub(lambda use: values.get(use[1] or use[2], "?"), stage[1])
            base = stages.get(image, (number, image))
            pins = []
            if stage[2]:
                stages[stage[2]] = base
        elif base is not None and "==" in text:
            words = [(number, word.strip("\"'")) for word in text.split()]
            pins += read_pins(words)
    if base is not None:
        # What is installed comes after the base, and wins.
        yield from pins
        yield from _state_image(*base)


def _state_image(line: int, image: str) -> Iterator[Statement]:
    """Yield what the name of an image states."""
    found = _IMAGE.fullmatch(image)
    if found is not None and found[1] in _IMAGES:
        yield from _IMAGES[found[1]](found[2], line)


def _state_tensorflow(tag: str, line: int) -> Iterator[Statement]:
    version = _TENSORFLOW.fullmatch(tag)
    if version is not None:
        yield Statement("tensorflow.version", version[1], line)


def _state_cuda(tag: str, line: int) -> Iterator[Statement]:
    cuda = _CUDA.fullmatch(tag)
    if cuda is None:
        return
    yield Statement("cuda.cudart.version", cuda[1], line, is_loose=True)
    if cuda[2]:
        yield Statement("cuda.cudnn.version", cuda[2], line, is_loose=True)
    yield from _state_system(cuda[3], line)


def _state_python(tag: str, line: int) -> Iterator[Statement]:
    python = _PYTHON.fullmatch(tag)
    if python is not None:
        yield Statement("python.version", python[1], line, is_loose=True)
        yield from _state_system(python[2] or "", line)


def _state_ngc(tag: str, line: int) -> Iterator[Statement]:
    for row in load_image_tables().ngc.release:
        if tag in row.tags:
            yield from _state_release(row, tag, line)


def _state_debian(tag: str, line: int) -> Iterator[Statement]:
    return _state_system(tag.removesuffix("-slim"), line)


def _state_ubuntu(tag: str, line: int) -> Iterator[Statement]:
    return _state_system(f"ubuntu{tag}", line)


def _state_release(row: NgcRelease, tag: str, line: int) -> Iterator[Statement]:
    """Yield what is known of a release of NVIDIA's TensorFlow images."""
    held = {
        "tensorflow.version": row.tf1 if "-tf1" in tag or not row.tf2 else row.tf2,
        "python.version": row.python,
        "cuda.cudart.version": ".".join((row.cuda or "").split(".")[:2]),
        "cuda.cudnn.version": row.cudnn,
        "cuda.nccl.version": row.nccl,
    }
    for path, version in held.items():
        if version:
            yield Statement(path, version, line, is_loose=True)
    yield from _state_system(f"ubuntu{row.ubuntu}", line)


def _state_system(name: str, line: int) -> Iterator[Statement]:
    """Yield what is known of a system by its name in tags, such as `ubuntu22.04` and `bookworm`."""
    for system in load_image_tables().python.system:
        if name in (system.name, system.os.removeprefix("debian ")):
            os, version = system.os.split()
            yield Statement("system.os", os, line)
            yield Statement("system.os_version", version, line)
            yield Statement("system.libc_version", system.libc, line)


_IMAGES: Mapping[str, Callable[[str, int], Iterator[Statement]]] = {
    "tensorflow/tensorflow": _state_tensorflow,
    "nvcr.io/nvidia/tensorflow": _state_ngc,
    "nvidia/cuda": _state_cuda,
    "nvcr.io/nvidia/cuda": _state_cuda,
    "python": _state_python,
    "debian": _state_debian,
    "ubuntu": _state_ubuntu,
}
"""What reads the tag of an image, by the image's name."""
