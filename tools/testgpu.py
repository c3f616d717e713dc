"""Measure what only a GPU can decide, into one redacted file: python tools/testgpu.py --python PYTHON

PYTHON is the interpreter of an environment with TensorFlow's GPU build. The file holds the eleven experiments of
gpu_experiments.py, the GPUs as NVML shows them, the canary and `repeat` in fresh processes, programs of the zoos, and
CPU against GPU; tools/gpu_rows.py makes rows of the tables from it. It is written after every part, so what a stopped
run has measured is kept.

`--stand-in cpu` runs everything on the CPU in place of a GPU, to see that it runs; the file then says so.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "tools")]

from gpu_experiments import EXPERIMENTS, Case  # noqa: E402
from gpu_result import CaseResult, Experiment, Machine, Result, Verdict, private, redacted  # noqa: E402

PROGRAMS = ROOT / "tools" / "gpu_programs.py"
SECONDS = 900.0  # of one process
ZOO = (
    "scatter",
    "bincount",
    "crop",
    "dropout",
    "map_fn",
    "addn",
    "xla_dropout",
    "mirrored_shuffle",
    "clean",
    "clean_fit",
)
"""Programs of the zoos whose operations have a kernel for GPUs."""
PROBE = """
import ctypes, json, platform, tensorflow as tf
build = tf.sysconfig.get_build_info()
def cudnn():
    for soname in ("libcudnn.so.9", "libcudnn.so.8"):
        try:
            number = ctypes.CDLL(soname).cudnnGetVersion()
        except (OSError, AttributeError):
            continue
        scale = 10_000 if number >= 90_000 else 1_000  # since cuDNN 9, a minor version has two digits of its own
        return f"{number // scale}.{number % scale // 100}.{number % 100}"
    return build.get("cudnn_version")
gpus = [tf.config.experimental.get_device_details(each) for each in tf.config.list_physical_devices("GPU")]
print("answer:" + json.dumps({
    "tensorflow": tf.__version__, "keras": getattr(tf.keras, "__version__", None), "python": platform.python_version(),
    "cuda": build.get("cuda_version"), "cudnn": cudnn(),
    "gpus": [f"{each.get('device_name')}, compute capability "
             f"{'.'.join(map(str, each.get('compute_capability', ())))}" for each in gpus]}))
"""

WHEELS = """
import pathlib, sysconfig
print(*sorted(pathlib.Path(sysconfig.get_path("purelib"), "nvidia").glob("*/lib")), sep="\\n")
"""


class Bench:
    """What is measured with: an interpreter, and whether the CPU stands in for a GPU."""

    def __init__(self, python: Path, *, stand_in: bool, quick: bool, jobs: int) -> None:
        self.python = python
        self.stand_in = stand_in
        self.quick = quick
        self.jobs = jobs
        self.failures: list[str] = []

    def answer(
        self, words: list[str], environ: Mapping[str, str | None], what: str
    ) -> dict[str, Any] | None:
        """Return what a program of ours prints; None, and a failure noted, where it prints nothing."""
        full = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3"}
        for name, value in environ.items():
            full.pop(name, None)
            if value is not None:
                full[name] = value
        try:
            done = subprocess.run(
                [str(self.python), *words],
                capture_output=True,
                text=True,
                env=full,
                timeout=SECONDS,
                check=False,
            )
        except subprocess.TimeoutExpired:
            self.failures.append(f"{what}: no answer in {SECONDS:g} s")
            return None
        if "answer:" not in done.stdout:
            last = (done.stderr.strip().splitlines() or ["no output"])[-1]
            self.failures.append(redacted(f"{what}: exit code {done.returncode}: {last[:300]}"))
            return None
        found: dict[str, Any] = json.loads(done.stdout.rpartition("answer:")[2])
        return found

    def envlock(self, *words: str, environ: Mapping[str, str] | None = None) -> dict[str, Any]:
        """Return the JSON report of a command of envlock; empty, and a failure noted, where it gives none."""
        command = [sys.executable, "-m", "envlock", *words]
        done = subprocess.run(
            command,
            capture_output=True,
            text=True,
            cwd=ROOT,
            env={**os.environ, **(environ or {})},
            check=False,
        )
        try:
            found: dict[str, Any] = json.loads(done.stdout)
        except ValueError:
            if done.returncode:
                self.failures.append(
                    redacted(
                        f"envlock {words[0]}: exit code {done.returncode}: {done.stderr[-300:]}"
                    )
                )
            return {}
        return found


def main() -> None:
    """Measure, and write the file."""
    asked = _arguments()
    _add_wheel_folders(asked.python)
    bench = Bench(
        asked.python, stand_in=asked.stand_in is not None, quick=asked.quick, jobs=asked.jobs
    )
    machine = bench.answer(["-c", PROBE], {}, "TensorFlow") or sys.exit(
        f"error: {bench.failures[0]}"
    )
    if not machine["gpus"] and not bench.stand_in:
        sys.exit(
            f"error: TensorFlow {machine['tensorflow']} sees no GPU\n"
            f"hint: `envlock doctor --python {asked.python}` names the cause; on a machine without a GPU,"
            " `make testgpu STAND_IN=cpu` runs everything on the CPU, and marks the result so"
        )
    profile = None if bench.stand_in else _nvml(bench)
    found: dict[str, Any] = {
        "stand_in": bench.stand_in,
        "date": datetime.now(timezone.utc).date().isoformat(),
        "machine": Machine(
            **machine, **_system(), driver=(profile or {}).get("system", {}).get("driver_version")
        ),
        "nvml": profile,
        "experiments": (),
        "canary": {},
        "repeat": {},
        "zoo": (),
        "cpu_against_gpu": {},
    }
    with tempfile.TemporaryDirectory() as folder:
        parts: dict[str, Callable[[], Any]] = {
            "canary": lambda: _canary(bench),
            "repeat": lambda: _repeat(bench),
            "cpu_against_gpu": lambda: _both(bench, Path(folder)),
            "zoo": lambda: _zoo(bench),
        }
        for number, title in enumerate(EXPERIMENTS, 1):
            if number in asked.experiments:
                cases = EXPERIMENTS[title][: 1 if asked.sample else None]
                found["experiments"] = (
                    *found["experiments"],
                    _experiment(bench, number, title, cases),
                )
                _write(asked.output, found, bench)
        for name in (each for each in parts if each in asked.parts):
            print(f"{name}", file=sys.stderr)
            found[name] = parts[name]()
            _write(asked.output, found, bench)
    for failure in bench.failures:
        print(f"failed: {failure}", file=sys.stderr)
    print(
        f"wrote {asked.output}: {'the CPU in place of a GPU' if bench.stand_in else ', '.join(machine['gpus'])}"
    )
    sys.exit(1 if bench.failures else 0)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    every = list(range(1, len(EXPERIMENTS) + 1))
    parts = ["canary", "repeat", "cpu_against_gpu", "zoo"]
    parser.add_argument(
        "--python", type=Path, required=True, help="interpreter with TensorFlow's GPU build"
    )
    parser.add_argument(
        "--output", type=Path, default=Path("gpu-result.json"), help="file to write"
    )
    parser.add_argument("--stand-in", choices=["cpu"], help="what takes the place of the GPU")
    parser.add_argument(
        "--quick", action="store_true", help="two calls and one process each: to see that it runs"
    )
    parser.add_argument(
        "--jobs",
        type=int,
        default=1,
        help="cases of an experiment at a time; set TF_FORCE_GPU_ALLOW_GROWTH=true (default: 1)",
    )
    parser.add_argument(
        "--sample", action="store_true", help="only the first case of each experiment"
    )
    parser.add_argument(
        "--experiments", type=int, nargs="*", default=every, help="numbers (default: all)"
    )
    parser.add_argument(
        "--parts", nargs="*", default=parts, choices=parts, help="what else (default: all)"
    )
    return parser.parse_args()


def _add_wheel_folders(python: Path) -> None:
    """Let the loader find the libraries of the nvidia-* wheels.

    TensorFlow 2.21.0 finds all but cuSOLVER by itself, and without it registers no GPU: `envlock doctor` says so, and
    it was seen on an H100.
    """
    done = subprocess.run([str(python), "-c", WHEELS], capture_output=True, text=True, check=False)
    folders = [*done.stdout.splitlines(), *filter(None, [os.environ.get("LD_LIBRARY_PATH")])]
    if folders:
        os.environ["LD_LIBRARY_PATH"] = os.pathsep.join(folders)


def _system() -> dict[str, str]:
    lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    named = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return {
        "system": f"{platform.system()} {platform.release()}",
        "processor": (named or [platform.machine()])[0],
    }


def _nvml(bench: Bench) -> dict[str, Any] | None:
    """Return the redacted recording of this machine's GPUs."""
    done = subprocess.run(
        [sys.executable, str(ROOT / "tools" / "record_nvml.py")],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        bench.failures.append(redacted(f"record_nvml.py: {done.stderr.strip()[-300:]}"))
        return None
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def _experiment(bench: Bench, number: int, title: str, asked: Sequence[Case]) -> Experiment:
    print(f"experiment {number} of {len(EXPERIMENTS)}: {title}", file=sys.stderr)
    runs: list[tuple[Case, str]] = []
    missing = []
    for case in asked:
        why = _missing(case, bench)
        if why:
            missing.append(f"{case.program}, {case.name}: {why}")
            continue
        devices = ("GPU", "CPU") if case.everywhere else ("GPU",)
        runs += [(case, device) for device in devices]
    with ThreadPoolExecutor(bench.jobs) as pool:
        cases = tuple(pool.map(lambda run: _case(bench, *run), runs))
    return Experiment(number=number, title=title, cases=cases, not_run=tuple(missing))


def _missing(case: Case, bench: Bench) -> str | None:
    """Return why a case cannot be run here."""
    if bench.stand_in:
        return "a CPU has no slices" if case.needs == "MIG" else None
    names = os.environ.get("CUDA_VISIBLE_DEVICES", "")
    return (
        "no slice in CUDA_VISIBLE_DEVICES" if case.needs == "MIG" and "MIG-" not in names else None
    )


def _case(bench: Bench, case: Case, device: str) -> CaseResult:
    processes, calls = (1, min(case.calls, 2)) if bench.quick else (case.processes, case.calls)
    told: dict[str, str] = {}
    digests: Counter[str] = Counter()
    errors: dict[str, None] = {}
    asked = {
        "program": case.program,
        "calls": calls,
        "determinism": case.determinism,
        "observed": case.observed,
        "tf32": case.tf32,
        "memory_mib": None if bench.stand_in else case.memory_mib,
        "replicas": 2 if bench.stand_in and case.several else 0,
        "device": "CPU:0" if bench.stand_in or device == "CPU" else "GPU:0",
    }
    for _ in range(processes):
        answer = bench.answer(
            [str(PROGRAMS), json.dumps(asked)], case.environ, f"{case.program}, {case.name}"
        )
        if answer is not None:
            digests.update(answer["digests"])
            told.update(answer["told"])
            if answer["error"]:
                errors[redacted(answer["error"])] = None
    return CaseResult(
        name=case.name,
        program=case.program,
        rows=case.rows,
        environ=dict(case.environ),
        determinism=case.determinism,
        device="CPU" if device == "CPU" else "GPU",
        processes=processes,
        calls=calls,
        digests=dict(digests),
        errors=tuple(errors),
        told=told,
    )


def _canary(bench: Bench) -> dict[str, dict[str, str]]:
    """Return, for each group of the canary, what each operation gave: the hash, or that fresh processes differ."""
    found: dict[str, dict[str, str]] = {}
    for _ in range(1 if bench.quick else 10):
        report = bench.envlock("canary", "-f", "json", "--python", str(bench.python))
        groups = (report.get("attachments") or {}).get("numerics", {}).get("groups", {})
        for group, each in groups.items():
            for name, operation in each["operations"].items():
                digest = str(operation.get("sha256", "unstable"))[:16]
                before = found.setdefault(group, {}).setdefault(name, digest)
                if before != digest:
                    found[group][name] = "differs between processes"
    return found


def _repeat(bench: Bench) -> dict[str, str]:
    """Return whether fresh processes give the same, with op determinism and without."""
    found = {}
    for name, environ in (("as it is", {}), ("op determinism", {"TF_DETERMINISTIC_OPS": "1"})):
        report = bench.envlock(
            *("repeat", f"{PROGRAMS}:trained", "--fresh", "-n", "2" if bench.quick else "7"),
            *("-f", "json", "--python", str(bench.python)),
            environ=environ,
        )
        if report:
            found[name] = redacted(report["headline"])
    return found


def _both(bench: Bench, folder: Path) -> dict[str, str]:
    """Return where a training on the CPU and one on the GPU first differ."""
    gpu = {"TF_ENABLE_ONEDNN_OPTS": "0"} if bench.stand_in else {}
    sides: tuple[tuple[str, dict[str, str]], ...] = (
        ("cpu", {"CUDA_VISIBLE_DEVICES": ""}),
        ("gpu", gpu),
    )
    for name, environ in sides:
        words = (
            "record",
            f"{PROGRAMS}:trained",
            "-o",
            str(folder / name),
            "--python",
            str(bench.python),
        )
        bench.envlock("diverge", *words, environ=environ)
    if not all((folder / name).exists() for name, _ in sides):
        return {}
    report = bench.envlock(
        "diverge", "compare", str(folder / "cpu"), str(folder / "gpu"), "-f", "json"
    )
    findings = [redacted(each["message"]) for each in report.get("findings", [])[:3]]
    return {"headline": redacted(report.get("headline", "")), "first": "; ".join(findings)}


def _zoo(bench: Bench) -> tuple[Verdict, ...]:
    return tuple(_verdicts(bench))


def _verdicts(bench: Bench) -> Iterator[Verdict]:
    from diverge_zoo import known, visited

    names = ZOO[:1] if bench.quick else ZOO
    for animals in known(names):
        for animal, mark, seen in visited(bench.python, animals, 4):
            place = seen.get("place") or {}
            yield Verdict(
                program=animal.name,
                verdict=str(seen.get("verdict")),
                culprit=seen.get("culprit"),
                line=place.get("line"),
                mark=mark,
            )


def _write(output: Path, found: dict[str, Any], bench: Bench) -> None:
    """Write the file, if nothing private stands in it."""
    result = Result(**found, failures=tuple(bench.failures))
    text = result.model_dump_json(indent=1) + "\n"
    secrets = private(text)
    if secrets:
        sys.exit(f"error: the result would hold {', '.join(secrets)}: nothing was written")
    temporary = output.with_suffix(".part")
    temporary.write_text(text, encoding="utf-8")
    temporary.replace(output)


if __name__ == "__main__":
    main()
