"""What `assert_locked()` costs where CUDA and a GPU are: a real tensorflow[and-cuda], and a GPU profile replayed.

    python benchmarks/cuda.py PYTHON [PROFILE]

PYTHON is the interpreter of an environment with tensorflow[and-cuda]. Needs root: in a mount namespace of its own,
/proc/driver/nvidia is made to exist, so that envlock asks NVML, which is the stand-in library of the tests.
"""

from __future__ import annotations

import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import pynvml

from tests.fakes.fake_nvml import profile
from tests.fakes.replay import KERNEL_TEXT, Machine

ROOT = Path(__file__).resolve().parents[1]
ROUNDS = 15
NAMESPACE = (
    'mount -t tmpfs none /proc/driver && mkdir /proc/driver/nvidia && cp "$1" /proc/driver/nvidia/version && shift && '
    'exec "$@"'
)
CPU = """
import resource, sys, time
def cpu():
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in used)
before, begin = cpu(), time.perf_counter()
{}
print((cpu() - before) * 1e3, (time.perf_counter() - begin) * 1e3)
"""
ASSERT = "sys.path.append(sys.argv[1]); import envlock; assert envlock.assert_locked().match"
COLLECT = """
sys.path.append(sys.argv[1])
from envlock.runtime.collectors import cuda_build
from envlock.runtime.cuda import section
from envlock.runtime.host import Host
host = Host()
before, begin = cpu(), time.perf_counter()
assert cuda_build.collect(host)
"""


def main() -> None:
    """Print the table."""
    python, name = sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else "h200__590__whole"
    with tempfile.TemporaryDirectory() as folder:
        machine = Machine(Path(folder), profile(name))
        version = Path(folder, "version")
        text = KERNEL_TEXT["open"].format(version=profile(name)["system"]["driver_version"])
        version.write_text(text, encoding="ascii")
        plain = {key: value for key, value in os.environ.items() if not key.startswith("PYTHON")}
        binding = Path(folder, "binding")  # the environment may have none
        binding.mkdir()
        shutil.copy(pynvml.__file__, binding)
        environ = {
            **plain,
            **machine.environ,
            "TF_CPP_MIN_LOG_LEVEL": "3",
            "PYTHONPATH": str(binding),
        }

        def run(*words: str) -> str:
            command = ["unshare", "-m", "sh", "-c", NAMESPACE, "sh", str(version), *words]
            return subprocess.run(
                command, cwd=folder, env=environ, capture_output=True, text=True, check=True
            ).stdout

        run(sys.executable, "-m", "envlock", "capture", "--python", python)
        devices = json.loads(Path(folder, "envlock.lock").read_text(encoding="utf-8"))["facts"][
            "gpu"
        ]["devices"]

        def measure(code: str, rounds: int) -> tuple[float, float]:
            rows = [
                run(python, "-c", CPU.format(code), str(ROOT)).split()[-2:]
                for _ in range(rounds + 1)
            ][1:]
            return statistics.median(float(row[0]) for row in rows), statistics.median(
                float(row[1]) for row in rows
            )

        rows = {
            "import tensorflow": measure("import tensorflow", 5),
            "import envlock; assert_locked(), NVML child included": measure(ASSERT, ROUNDS),
            "the CUDA facts of it, in process, its imports excluded": measure(COLLECT, ROUNDS),
        }
        print(
            f"{python}, {len(devices)} GPU(s) of {name}; medians in ms: CPU (with children), wall"
        )
        for what, (cpu, wall) in rows.items():
            print(f"{cpu:10.1f} {wall:10.1f}  {what}")
        (tf, _), (whole, _), _ = rows.values()
        print(f"assert_locked() is {whole / tf * 100:.2f} % of import tensorflow (CPU)")


if __name__ == "__main__":
    main()
