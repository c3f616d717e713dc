"""On real CUDA wheels: another cuDNN is refused, with the reason that it won first, whichever way it came in."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Command
from tests.real.test_cuda_install import ROOT, each_environment, probe, second_cudnn

pytestmark = pytest.mark.cuda_wheels

IN_PROCESS = """
import ctypes, json, sys
sys.path.append(sys.argv[1])
import envlock
if len(sys.argv) > 2:
    ctypes.CDLL(sys.argv[2])
try:
    sys.path.remove(sys.argv[1])
    print(json.dumps(envlock.assert_locked().to_json()))
except envlock.EnvironmentMismatch as mismatch:
    print(json.dumps(mismatch.report.to_json()))
"""


AROUND = """
import ctypes, os, sys
sys.path.append(sys.argv[1])
import envlock
sys.path.remove(sys.argv[1])
def cuda():
    mapped = {line.split()[-1] for line in open("/proc/self/maps") if ".so" in line}
    return sorted(path for path in mapped if os.path.basename(path).startswith(("libcu", "libnv", "libnccl")))
CALL
assert cuda() == []
import tensorflow
library = ctypes.CDLL(os.path.join(os.path.dirname(tensorflow.__file__), "libtensorflow_framework.so.2"))
library.cudnnGetVersion.restype = ctypes.c_size_t
library.cudnnGetVersion()
print(cuda())
"""


@pytest.fixture
def lock_of(envlock: Command) -> Any:
    """Return a function that locks an environment into the folder."""

    def lock(python: Path) -> None:
        done = envlock("capture", "--quiet", "--python", str(python))
        assert (0, "") == (done.returncode, done.stderr)

    return lock


def first_finding(done: subprocess.CompletedProcess[str]) -> tuple[int, str, str, str]:
    """Return exit code, path, locked and live value of the first finding."""
    first = json.loads(done.stdout)["findings"][0]
    return done.returncode, first["where"]["fact"], first["expected"], first["actual"]


@each_environment
def test_the_locked_environment_matches_and_tensorflow_contradicts_nothing(
    python: Path, envlock: Command, lock_of: Any
) -> None:
    lock_of(python)
    done = envlock("verify", "--deep", "--python", str(python), timeout=300)
    assert (done.returncode, done.stdout.splitlines()[0].partition(" (")[0]) == (0, "matches under policy strict")
    assert [line for line in done.stdout.splitlines() if line.startswith(("  x", "  ?"))] == []


@each_environment
@pytest.mark.parametrize("variable", ["LD_LIBRARY_PATH", "LD_PRELOAD"])
def test_a_second_cudnn_by_a_variable(python: Path, variable: str, envlock: Command, lock_of: Any) -> None:
    lock_of(python)
    folder, _ = second_cudnn(python)
    value = str(folder) if variable == "LD_LIBRARY_PATH" else f"{folder}/libcudnn.so.9"
    words = ["verify", "--format", "json", "--python", str(python)]
    done = envlock(*words, environ={variable: value}, timeout=120)
    assert (1, "cuda.cudnn.resolved_by", "RUNPATH", variable) == first_finding(done)


@each_environment
def test_a_second_cudnn_by_the_cache(python: Path, envlock: Command, lock_of: Any, tmp_path: Path) -> None:
    if os.geteuid() != 0 or subprocess.run(["unshare", "-m", "true"], check=False, capture_output=True).returncode:
        reason = "this needs root and a mount namespace"
        pytest.fail(reason) if os.environ.get("CI") else pytest.skip(reason)
    lock_of(python)
    folder, _ = second_cudnn(python)
    hidden = Path(probe(python)["tree"]["cudnn"]["file"]).parent
    (tmp_path / "conf").write_text(f"include /etc/ld.so.conf\n{tmp_path}/seen\n")
    (tmp_path / "seen").mkdir()
    for path in folder.glob("lib*"):
        (tmp_path / "seen" / path.name).symlink_to(path)
    made = ["/sbin/ldconfig", "-C", str(tmp_path / "cache"), "-f", str(tmp_path / "conf"), "-X"]
    subprocess.run(made, check=True, capture_output=True)
    script = f'mount --bind {tmp_path}/cache /etc/ld.so.cache && mount -t tmpfs none {hidden} && exec "$@"'
    inside = Command(["unshare", "-m", "sh", "-c", script, "sh", *envlock.argv], envlock.folder)
    done = inside("verify", "--format", "json", "--python", str(python), timeout=120)
    assert (1, "cuda.cudnn.resolved_by", "RUNPATH", "ld.so.cache") == first_finding(done)


@each_environment
def test_a_second_cudnn_that_is_in_the_process_already(python: Path, envlock: Command, lock_of: Any) -> None:
    lock_of(python)
    folder, _ = second_cudnn(python)
    script = Command([str(python), "-c", IN_PROCESS, str(ROOT)], envlock.folder)
    alone, after = script(), script(f"{folder}/libcudnn.so.9")
    assert json.loads(alone.stdout)["match"], alone.stdout + alone.stderr
    assert (0, "cuda.cudnn.resolved_by", "RUNPATH", "loaded") == first_finding(after), after.stderr


@each_environment
def test_the_assertion_maps_nothing_and_tensorflow_loads_what_it_would(
    python: Path, envlock: Command, lock_of: Any
) -> None:
    lock_of(python)
    loaded = []
    for call in ("envlock.assert_locked()", "pass"):
        done = Command([str(python), "-c", AROUND.replace("CALL", call), str(ROOT)], envlock.folder)(
            environ={"TF_CPP_MIN_LOG_LEVEL": "3"}, timeout=300
        )
        assert 0 == done.returncode, done.stderr[-2000:]
        loaded.append(done.stdout)
    assert loaded[0] == loaded[1]
    assert "libcudnn.so" in loaded[0]


def test_this_interpreter_is_not_the_one_looked_at() -> None:
    assert all(
        Path(sys.executable) != python for python in map(Path, os.environ["ENVLOCK_TEST_CUDA_PYTHONS"].split(":"))
    )
