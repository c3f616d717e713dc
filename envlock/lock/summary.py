"""A lockfile in at most 40 lines, for an issue tracker, a message or the log of an agent."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from envlock.runtime.environment_line import make_line
from envlock.runtime.report import clean, count, show

LINE_LIMIT = 200
"""Characters of a line: a text in a lockfile can have 1,000."""
LIMIT = 40
"""Lines of a summary: a longer one is not read in an issue."""
GPUS, LIBRARIES, VARIABLES, UNKNOWN = 4, 8, 10, 4
"""Lines that each list may have at most; one more says how many are left out."""
VECTORS = (
    "avx",
    "avx2",
    "fma",
    "avx512f",
    "avx512_vnni",
    "avx512_bf16",
    "amx_tile",
    "asimd",
    "sve",
)
"""Instruction sets that distinguish processors; the lockfile has all that select kernels."""
BUILT = (("CUDA", "built_with_cuda"), ("cuDNN", "built_with_cudnn"))


def render_summary(document: Mapping[str, Any]) -> list[str]:
    """Return a lockfile in at most `LIMIT` lines: its line, versions, GPUs, libraries, variables."""
    facts = document["facts"]
    rows = {
        "TensorFlow": _describe_tensorflow(facts),
        "Keras": _describe_keras(facts),
        "NumPy": _collect(facts, "numpy", ("version", "blas.configuration")),
        "Python": _collect(facts, "python", ("implementation", "version", "prefix_kind")),
        "packages": _count_packages(facts),
        "system": _collect(facts, "system", ("os", "os_version", "kernel_release", "machine")),
        "C library": _collect(facts, "system", ("libc", "libc_version")),
        "CPU": _describe_cpu(facts),
        "GPU driver": _collect(facts, "gpu", ("driver_version",)),
    }
    lines = [make_line(document)]
    for name, words in rows.items():
        lines.append(f"{name}: {' '.join(words) or 'none'}")
    unknown = []
    for path, entry in document["unavailable"].items():
        line = f"unknown: {path} ({clean(entry['code'])})"
        unknown.append(line)
    lines += _shorten(_list_gpus(_find(facts, "gpu.devices")), GPUS)
    lines += _shorten(_list_libraries(_find(facts, "cuda")), LIBRARIES)
    lines += _shorten(_list_variables(_find(facts, "environ")), VARIABLES)
    lines += _shorten(unknown, UNKNOWN)
    return [line[:LINE_LIMIT] for line in lines]


def _find(facts: object, path: str) -> object:
    """Return the value at a dotted path of the facts; None if any step is missing."""
    for name in path.split("."):
        if not isinstance(facts, Mapping):
            return None
        facts = facts.get(name)
    return facts


def _collect(facts: object, section: str, paths: Sequence[str]) -> list[str]:
    """Return the facts of a section that exist, as phrases."""
    found = [_find(facts, f"{section}.{path}") for path in paths]
    return [show(value) for value in found if value is not None]


def _count_packages(facts: Mapping[str, object]) -> list[str]:
    if "packages" not in facts:
        return []
    packages = facts["packages"]
    number = len(packages) if isinstance(packages, Mapping) else 0
    return [str(number)]


def _describe_tensorflow(facts: object) -> list[str]:
    words = _collect(facts, "tensorflow", ("version",))
    build = _find(facts, "tensorflow.nvidia_build")
    if build:
        words.append(show(f"NVIDIA {build}"))
    distributions = _find(facts, "tensorflow.distributions")
    if isinstance(distributions, list) and distributions:
        words.append(show(f"({', '.join(distributions)})"))
    libraries = []
    for name, key in BUILT:
        version = _find(facts, f"tensorflow.{key}")
        if version:
            text = f"{name} {version}"
            libraries.append(text)
    if libraries:
        words.append(show(f"built with {', '.join(libraries)}"))
    return words


def _describe_keras(facts: object) -> list[str]:
    words = _collect(facts, "keras", ("version",))
    legacy = _find(facts, "keras.legacy_version")
    if legacy:
        words.append(show(f"tf-keras {legacy}"))
    backend = _find(facts, "keras.config.backend")
    if backend:
        words.append(show(f"backend {backend}"))
    return words


def _describe_cpu(facts: object) -> list[str]:
    parts = []
    model = _find(facts, "cpu.model_name")
    if model is not None:
        parts.append(str(model))
    visible = _find(facts, "cpu.affinity_count")
    if isinstance(visible, int):
        parts.append(count(visible, "CPU"))
    threads = []
    for name in ("intra", "inter"):
        number = _find(facts, f"cpu.{name}_op_threads")
        if number is not None:
            text = f"{name}-op {number}"
            threads.append(text)
    if threads:
        parts.append(f"threads {', '.join(threads)}")
    locked = _find(facts, "cpu.flags")
    if isinstance(locked, list):
        flags = [name for name in VECTORS if name in locked]
        if flags:
            parts.append(" ".join(flags))
    if not parts:
        return []
    return [show(" | ".join(parts))]


def _list_gpus(devices: object) -> Iterator[str]:
    # By length first, so that 10 follows 9.
    for index, device in sorted(_get_items(devices), key=lambda item: (len(item[0]), item[0])):
        name, capability = show(_find(device, "name")), show(_find(device, "compute_capability"))
        memory = show(_find(device, "memory_mib"))
        line = f"GPU {clean(index)}: {name}, compute capability {capability}, {memory} MiB"
        profile = _find(device, "mig.profile")
        if profile:
            line += f", MIG {show(profile)}"
        yield line


def _list_libraries(cuda: object) -> Iterator[str]:
    """Yield the version of each library that exists, without the parts of cuDNN."""
    for name, library in sorted(_get_items(cuda)):
        version = _find(library, "version")
        if version and not name.startswith("cudnn_"):
            yield f"{clean(name)}: {show(version)} ({show(_find(library, 'resolved_by'))})"


def _list_variables(environ: object) -> Iterator[str]:
    for name, value in sorted(_get_items(environ)):
        if value is not None:
            yield f"{clean(name)}={show(value)}"


def _get_items(section: object) -> Iterable[tuple[str, object]]:
    if isinstance(section, Mapping):
        return section.items()
    return ()


def _shorten(lines: Iterable[str], limit: int) -> list[str]:
    """Return the first `limit` lines, and one that counts the others."""
    every = list(lines)
    if len(every) <= limit:
        return every
    return [*every[:limit], f"and {len(every) - limit} more like it"]
