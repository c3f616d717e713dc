"""A lockfile in at most 40 lines, for an issue tracker, a message or the log of an agent."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from envlock.runtime.line import line_of
from envlock.runtime.report import clean, count, show

LINE_LIMIT = 200
"""Characters of a line: a text of the lockfile has up to 1,000."""
LIMIT = 40
"""Lines of a summary: what is longer is not read in an issue."""
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
"""Instruction sets that tell processors apart at a glance; the lockfile has all that choose kernels."""
BUILT = (("CUDA", "built_with_cuda"), ("cuDNN", "built_with_cudnn"))


def summary(document: Mapping[str, Any]) -> list[str]:
    """Return a lockfile in at most `LIMIT` lines: its line, versions, GPUs and libraries, variables that are set."""
    facts = document["facts"]
    rows = [
        ("TensorFlow", _describe_tensorflow(facts)),
        ("Keras", _describe_keras(_at(facts, "keras"))),
        ("NumPy", [_at(facts, "numpy", "version"), _at(facts, "numpy", "blas", "configuration")]),
        (
            "Python",
            [_at(facts, "python", name) for name in ("implementation", "version", "prefix_kind")],
        ),
        ("packages", _count_packages(facts)),
        (
            "system",
            [
                _at(facts, "system", name)
                for name in ("os", "os_version", "kernel_release", "machine")
            ],
        ),
        ("C library", [_at(facts, "system", name) for name in ("libc", "libc_version")]),
        ("CPU", _describe_cpu(_at(facts, "cpu"))),
        ("GPU driver", [_at(facts, "gpu", "driver_version")]),
    ]
    lines = [line_of(document)]
    for name, parts in rows:
        words = [show(part) for part in parts if part is not None]
        lines.append(f"{name}: {' '.join(words) or 'none'}")
    unknown = [
        f"unknown: {path} ({clean(entry['code'])})"
        for path, entry in document["unavailable"].items()
    ]
    lines += _shorten(_list_gpus(_at(facts, "gpu", "devices")), GPUS)
    lines += _shorten(_list_libraries(_at(facts, "cuda")), LIBRARIES)
    lines += _shorten(_list_variables(_at(facts, "environ")), VARIABLES)
    lines += _shorten(unknown, UNKNOWN)
    return [line[:LINE_LIMIT] for line in lines]


def _at(facts: Any, *path: str) -> Any:
    """Return what lies at a path of the facts; None where any step is missing."""
    for name in path:
        facts = facts.get(name) if isinstance(facts, Mapping) else None
    return facts


def _count_packages(facts: Mapping[str, Any]) -> list[str]:
    if "packages" not in facts:
        return []
    return [str(len(facts["packages"] or ()))]


def _describe_tensorflow(facts: Mapping[str, Any]) -> list[Any]:
    found = _at(facts, "tensorflow") or {}
    parts = [found.get("version")]
    if found.get("nvidia_build"):
        parts.append(f"NVIDIA {found['nvidia_build']}")
    if found.get("distributions"):
        parts.append(f"({', '.join(found['distributions'])})")
    against = [f"{name} {found[key]}" for name, key in BUILT if found.get(key)]
    if against:
        parts.append(f"built with {', '.join(against)}")
    return parts


def _describe_keras(found: Mapping[str, Any] | None) -> list[Any]:
    parts = [_at(found, "version")]
    legacy = _at(found, "legacy_version")
    if legacy:
        parts.append(f"tf-keras {legacy}")
    backend = _at(found, "config", "backend")
    if backend:
        parts.append(f"backend {backend}")
    return parts


def _describe_cpu(found: Mapping[str, Any] | None) -> list[Any]:
    parts = []
    if _at(found, "model_name") is not None:
        parts.append(_at(found, "model_name"))
    visible = _at(found, "affinity_count")
    if isinstance(visible, int):
        parts.append(count(visible, "CPU"))
    counts = {name: _at(found, f"{name}_op_threads") for name in ("intra", "inter")}
    threads = [f"{name}-op {number}" for name, number in counts.items() if number is not None]
    if threads:
        parts.append(f"threads {', '.join(threads)}")
    locked = _at(found, "flags") or ()
    flags = [name for name in VECTORS if name in locked]
    if flags:
        parts.append(" ".join(flags))
    if not parts:
        return []
    return [" | ".join(parts)]


def _list_gpus(devices: Mapping[str, Any] | None) -> Iterator[str]:
    # By length first, so that 10 comes after 9.
    for index, device in sorted((devices or {}).items(), key=lambda item: (len(item[0]), item[0])):
        name, capability = show(_at(device, "name")), show(_at(device, "compute_capability"))
        line = f"GPU {clean(index)}: {name}, compute capability {capability}, {show(_at(device, 'memory_mib'))} MiB"
        profile = _at(device, "mig", "profile")
        if profile:
            line += f", MIG {show(profile)}"
        yield line


def _list_libraries(cuda: Mapping[str, Any] | None) -> Iterator[str]:
    """Yield the version of each library that is there, the parts of cuDNN apart from itself left out."""
    for name, library in sorted((cuda or {}).items()):
        if (
            isinstance(library, Mapping)
            and library.get("version")
            and not name.startswith("cudnn_")
        ):
            yield f"{clean(name)}: {show(library['version'])} ({show(library.get('resolved_by'))})"


def _list_variables(environ: Mapping[str, Any] | None) -> Iterator[str]:
    for name, value in sorted((environ or {}).items()):
        if value is not None:
            yield f"{clean(name)}={show(value)}"


def _shorten(lines: Iterable[str], limit: int) -> list[str]:
    """Return the first `limit` lines, and one that counts the others."""
    every = list(lines)
    if len(every) <= limit:
        return every
    return [*every[:limit], f"and {len(every) - limit} more like it"]
