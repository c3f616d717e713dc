"""Programs of JAX and of PyTorch alone: change one variable at a time, and compare each verdict with the bits.

    python benchmarks/frameworks.py PYTHON

PYTHON has JAX, PyTorch or both, beside TensorFlow or not. Prints a row for each variable, and exits with 1 if a verdict was
`matches` where the bits changed.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

ENVLOCK = (sys.executable, "-m", "envlock")
JAX = """
import hashlib, jax, numpy
key = jax.random.key(0)
w = jax.random.normal(key, (64, 64))
def f(w): return (jax.numpy.tanh(w @ w) + jax.nn.softmax(w, 0)).sum(0)
found = (jax.jit(f)(w), jax.grad(lambda w: f(w).sum())(w), jax.random.categorical(key, w))
print(*[hashlib.sha256(numpy.asarray(each).tobytes()).hexdigest()[:8] for each in found])
"""
TORCH = """
import hashlib, torch
torch.manual_seed(0)
x, w, f = torch.randn(257, 513), torch.randn(513, 129), torch.nn.functional
found = (x @ w, f.softmax(x, 1).sum(0), torch.fft.rfft(x).abs().sum(), torch.linalg.inv(torch.randn(64, 64)))
found += (f.conv2d(torch.randn(4, 3, 33, 33), torch.randn(8, 3, 3, 3)).sum((0, 2, 3)), torch.tanh(x @ w).sum(0))
print(*[hashlib.sha256(each.numpy().tobytes()).hexdigest()[:8] for each in found])
"""
PROGRAMS = {"jax": JAX, "torch": TORCH}
VARIABLES = {
    "jax": (
        *(
            "JAX_ENABLE_X64=1",
            "JAX_THREEFRY_PARTITIONABLE=0",
            "JAX_DISABLE_JIT=1",
            "JAX_DISABLE_MOST_OPTIMIZATIONS=1",
        ),
        *(
            "JAX_DEFAULT_PRNG_IMPL=rbg",
            "JAX_RANDOM_SEED_OFFSET=3",
            "JAX_HIGH_DYNAMIC_RANGE_GUMBEL=1",
        ),
        *(
            "JAX_DEFAULT_MATMUL_PRECISION=bfloat16",
            "JAX_NUM_CPU_DEVICES=2",
            "JAX_OPTIMIZATION_LEVEL=O0",
        ),
        *(
            "JAX_SOFTMAX_CUSTOM_JVP=0",
            "JAX_USE_DIRECT_LINEARIZE=0",
            "JAX_LOG_COMPILES=1",
            "JAX_DEBUG_NANS=1",
        ),
        *(
            "XLA_FLAGS=--xla_cpu_enable_fast_math=true",
            "XLA_FLAGS=--xla_backend_optimization_level=0",
        ),
    ),
    "torch": (
        *(
            "ATEN_CPU_CAPABILITY=default",
            "ATEN_CPU_CAPABILITY=avx2",
            "MKL_ENABLE_INSTRUCTIONS=SSE4_2",
            "MKL_CBWR=COMPATIBLE",
        ),
        *(
            "OMP_NUM_THREADS=1",
            "MKL_NUM_THREADS=1",
            "OMP_THREAD_LIMIT=1",
            "ONEDNN_MAX_CPU_ISA=SSE41",
            "OMP_DYNAMIC=1",
        ),
        *(
            "MKL_DYNAMIC=0",
            "TORCH_MKLDNN_MATMUL_MIN_DIM=100000",
            "PYTORCH_JIT=0",
            "OMP_PROC_BIND=true",
            "TORCH_HOME=/nowhere",
        ),
    ),
}


def main(python: str) -> int:
    """Print the table; return the exit code."""
    wrong = 0
    with tempfile.TemporaryDirectory() as folder:
        run([*ENVLOCK, "capture", "--quiet", "--python", python], folder, {})
        for library, program in PROGRAMS.items():
            bits = run([python, "-c", program], folder, {}).stdout
            if not bits:
                print(f"no {library} in {python}")
                continue
            verdicts = [judge(python, folder, {}, policy) for policy in ("strict", "bits")]
            print(f"| {library} as locked | | {' | '.join(verdicts)} |")
            for text in VARIABLES[library]:
                name, _, value = text.partition("=")
                other = run([python, "-c", program], folder, {name: value}).stdout
                verdicts = [
                    judge(python, folder, {name: value}, policy) for policy in ("strict", "bits")
                ]
                changed = "ended" if not other else "changed" if other != bits else "unchanged"
                wrong += changed == "changed" and "matches" in verdicts
                print(f"| `{text}` | {changed} | {' | '.join(verdicts)} |", flush=True)
    print(f"{wrong} false greens")
    return min(wrong, 1)


def judge(python: str, folder: str, variables: dict[str, str], policy: str) -> str:
    """Return the verdict with these variables, in one word."""
    done = run([*ENVLOCK, "verify", "--python", python, "--policy", policy], folder, variables)
    return {0: "matches", 1: "refused"}.get(done.returncode, f"exit {done.returncode}")


def run(
    command: list[str], folder: str, variables: dict[str, str]
) -> subprocess.CompletedProcess[str]:
    """Run a command in a folder, with these variables beside those of this process."""
    environ = {**os.environ, **variables}
    return subprocess.run(
        command, cwd=Path(folder), env=environ, capture_output=True, text=True, check=False
    )


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    sys.exit(main(sys.argv[1]))
