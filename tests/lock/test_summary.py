"""A lockfile in at most 40 lines, whatever it holds."""

from __future__ import annotations

from typing import Any

from envlock.lock.summary import LIMIT, LINE_LIMIT, render_summary
from envlock.runtime.environment_line import make_line
from tests.locks import document

H100 = {"name": "NVIDIA H100 80GB HBM3", "compute_capability": "9.0", "memory_mib": 81559}
FACTS: dict[str, Any] = {
    "python": {"implementation": "cpython", "version": "3.11.7", "prefix_kind": "venv"},
    "packages": {f"package-{number}": {"version": "1"} for number in range(135)},
    "tensorflow": {
        "version": "2.21.0",
        "nvidia_build": None,
        "distributions": ["tensorflow"],
        "built_with_cuda": "12.5.1",
        "built_with_cudnn": "9",
    },
    "cuda": {
        "cudnn": {"version": "9.3.0", "resolved_by": "RUNPATH"},
        "cudnn_graph": {"version": "9.3.0", "resolved_by": "RUNPATH"},
        "cublas": {"version": "12.5.3.2", "resolved_by": "LD_LIBRARY_PATH"},
        "nccl": {"version": None, "linkage": "absent"},
        "other_cuda": ["nvidia-nvshmem-cu12"],
    },
    "gpu": {"driver_version": "580.65.06", "devices": {"0": H100, "1": {**H100, "mig": {"profile": "1g.10gb"}}}},
    "keras": {"version": "3.15.1", "legacy_version": "2.21.0", "config": {"backend": "tensorflow"}},
    "numpy": {"version": "2.4.6", "blas": {"configuration": "OpenBLAS 0.3.31 Haswell"}},
    "cpu": {
        "model_name": "Intel(R) Xeon(R) Processor",
        "flags": ["avx", "avx2", "sse4_1"],
        "affinity_count": 8,
        "intra_op_threads": 8,
        "inter_op_threads": 2,
    },
    "system": {"os": "debian", "os_version": "12", "machine": "x86_64", "libc": "glibc", "libc_version": "2.36"},
    "environ": {"TF_ENABLE_ONEDNN_OPTS": "0", "TF_CUDNN_USE_FRONTEND": None},
}


def test_a_machine_with_gpus() -> None:
    lock = document(facts=FACTS, unavailable={})
    assert render_summary(lock) == [
        make_line(lock),
        "TensorFlow: 2.21.0 (tensorflow) built with CUDA 12.5.1, cuDNN 9",
        "Keras: 3.15.1 tf-keras 2.21.0 backend tensorflow",
        "NumPy: 2.4.6 OpenBLAS 0.3.31 Haswell",
        "Python: cpython 3.11.7 venv",
        "packages: 135",
        "system: debian 12 x86_64",
        "C library: glibc 2.36",
        "CPU: Intel(R) Xeon(R) Processor | 8 CPUs | threads intra-op 8, inter-op 2 | avx avx2",
        "GPU driver: 580.65.06",
        "GPU 0: NVIDIA H100 80GB HBM3, compute capability 9.0, 81559 MiB",
        "GPU 1: NVIDIA H100 80GB HBM3, compute capability 9.0, 81559 MiB, MIG 1g.10gb",
        "cublas: 12.5.3.2 (LD_LIBRARY_PATH)",
        "cudnn: 9.3.0 (RUNPATH)",
        "TF_ENABLE_ONEDNN_OPTS=0",
    ]


def test_nvidias_own_build_says_so() -> None:
    lock = document(facts={"tensorflow": {"version": "2.17.0", "nvidia_build": "nv25.2"}})
    assert render_summary(lock)[1] == "TensorFlow: 2.17.0 NVIDIA nv25.2"
    assert render_summary(lock)[5] == "packages: none"


def test_what_is_more_is_counted() -> None:
    many = {
        "gpu": {"devices": {str(number): H100 for number in range(12)}},
        "cuda": {f"library{number}": {"version": "1", "resolved_by": "x" * 900} for number in range(30)},
        "environ": {f"VARIABLE_{number}": "\x1b[2J" * 300 for number in range(50)},
    }
    untold = {f"cpu.{number}": {"reason": "x", "code": "x"} for number in range(9)}
    lines = render_summary(document(facts={**FACTS, **many}, unavailable=untold))
    assert [line for line in lines if line.startswith("and ")] == [
        "and 8 more like it",
        "and 22 more like it",
        "and 40 more like it",
        "and 5 more like it",
    ]
    assert lines[13].startswith("GPU 3: ")
    assert (len(lines), max(map(len, lines))) == (LIMIT, LINE_LIMIT)
    assert all(line.isprintable() for line in lines)
