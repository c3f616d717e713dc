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
GPUS, LIBRARIES, VARIABLES, UNTOLD = 4, 8, 10, 4
"""Lines that each list may have at most; one more says how many are left out."""
VECTORS = ("avx", "avx2", "fma", "avx512f", "avx512_vnni", "avx512_bf16", "amx_tile", "asimd", "sve")
"""Instruction sets that tell processors apart at a glance; the lockfile has all that choose kernels."""
BUILT = (("CUDA", "built_with_cuda"), ("cuDNN", "built_with_cudnn"))


def summary(document: Mapping[str, Any]) -> list[str]:
    """Return a lockfile in at most `LIMIT` lines: its line, versions, GPUs and libraries, variables that are set."""
    facts = document["facts"]
    rows = [
        ("TensorFlow", _tensorflow(facts)),
        ("Keras", _keras(_at(facts, "keras"))),
        ("NumPy", [_at(facts, "numpy", "version"), _at(facts, "numpy", "blas", "configuration")]),
        ("Python", [_at(facts, "python", name) for name in ("implementation", "version", "prefix_kind")]),
        ("packages", [str(len(facts["packages"] or ()))] if "packages" in facts else []),
        ("system", [_at(facts, "system", name) for name in ("os", "os_version", "kernel_release", "machine")]),
        ("C library", [_at(facts, "system", name) for name in ("libc", "libc_version")]),
        ("CPU", _cpu(_at(facts, "cpu"))),
        ("GPU driver", [_at(facts, "gpu", "driver_version")]),
    ]
    head = [line_of(document)]
    for name, parts in rows:
        told = [show(part) for part in parts if part is not None]
        head += [f"{name}: {' '.join(told) if told else 'none'}"]
    lists = [
        *_some(_gpus(_at(facts, "gpu", "devices")), GPUS),
        *_some(_libraries(_at(facts, "cuda")), LIBRARIES),
        *_some(_variables(_at(facts, "environ")), VARIABLES),
        *_some(
            [f"unknown: {path} ({clean(entry['code'])})" for path, entry in document["unavailable"].items()], UNTOLD
        ),
    ]
    return [line[:LINE_LIMIT] for line in (*head, *lists)]


def _at(facts: Any, *path: str) -> Any:
    """Return what lies at a path of the facts; None where any step is missing."""
    for name in path:
        facts = facts.get(name) if isinstance(facts, Mapping) else None
    return facts


def _tensorflow(facts: Mapping[str, Any]) -> list[Any]:
    found = _at(facts, "tensorflow") or {}
    build = [f"NVIDIA {found['nvidia_build']}"] if found.get("nvidia_build") else []
    names = [f"({', '.join(found['distributions'])})"] if found.get("distributions") else []
    against = [f"{name} {found[key]}" for name, key in BUILT if found.get(key)]
    return [found.get("version"), *build, *names, *([f"built with {', '.join(against)}"] if against else [])]


def _keras(found: Mapping[str, Any] | None) -> list[Any]:
    legacy = _at(found, "legacy_version")
    backend = _at(found, "config", "backend")
    words = [f"tf-keras {legacy}" if legacy else None, f"backend {backend}" if backend else None]
    return [_at(found, "version"), *words]


def _cpu(found: Mapping[str, Any] | None) -> list[Any]:
    flags = [name for name in VECTORS if name in (_at(found, "flags") or ())]
    counts = {name: _at(found, f"{name}_op_threads") for name in ("intra", "inter")}
    threads = [f"{name}-op {number}" for name, number in counts.items() if number is not None]
    number = _at(found, "affinity_count")
    visible = count(number, "CPU") if isinstance(number, int) else None
    parts = [visible, f"threads {', '.join(threads)}" if threads else None, " ".join(flags) or None]
    told = [part for part in (_at(found, "model_name"), *parts) if part is not None]
    return [" | ".join(told)] if told else []


def _gpus(devices: Mapping[str, Any] | None) -> Iterator[str]:
    for index, device in sorted((devices or {}).items(), key=lambda item: (len(item[0]), item[0])):
        memory, slice_ = _at(device, "memory_mib"), _at(device, "mig", "profile")
        more = [f"compute capability {show(_at(device, 'compute_capability'))}", f"{show(memory)} MiB"]
        more += [f"MIG {show(slice_)}"] if slice_ else []
        yield f"GPU {clean(index)}: {show(_at(device, 'name'))}, {', '.join(more)}"


def _libraries(cuda: Mapping[str, Any] | None) -> Iterator[str]:
    """Yield the version of each library that is there, the parts of cuDNN apart from itself left out."""
    for name, library in sorted((cuda or {}).items()):
        if isinstance(library, Mapping) and library.get("version") and not name.startswith("cudnn_"):
            yield f"{clean(name)}: {show(library['version'])} ({show(library.get('resolved_by'))})"


def _variables(environ: Mapping[str, Any] | None) -> Iterator[str]:
    for name, value in sorted((environ or {}).items()):
        if value is not None:
            yield f"{clean(name)}={show(value)}"


def _some(lines: Iterable[str], limit: int) -> list[str]:
    every = list(lines)
    return [*every[:limit], *([f"and {len(every) - limit} more like it"] if len(every) > limit else [])]
