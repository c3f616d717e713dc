"""The demo: lock an environment, verify it, change one thing that changes bits, be refused, build.

    python tools/demo.py ENVIRONMENT

Run by the environment of the command line, as `uv tool install` makes one; ENVIRONMENT has a real TensorFlow and the
package `envlock`, and needs no GPU. `make demo` makes both and runs this. With a container
engine and a registry it builds an image, and the script computes the same bits in it; else, what an image consists of
is installed into a scratch environment and verified.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path
from typing import NamedTuple

from envlock.image.engines.find import find
from envlock.runtime.errors import EnvlockError

ENVIRONMENT = Path(*sys.argv[1:2]).absolute()
BIN = ENVIRONMENT / "bin"
TOOL = Path(sys.executable).parent

TRAIN = """\
import envlock
envlock.assert_locked()                       # line 1: refuse to start in another environment

import hashlib
import tensorflow as tf

tf.keras.utils.set_random_seed(42)
images, kernel = tf.random.normal((8, 28, 28, 8)), tf.random.normal((3, 3, 8, 16))
with tf.GradientTape() as tape:
    tape.watch(kernel)
    loss = tf.reduce_sum(tf.tanh(tf.nn.conv2d(images, kernel, 1, "SAME")))
gradient = tape.gradient(loss, kernel).numpy()
print("bits of the gradient:", hashlib.sha256(gradient.tobytes()).hexdigest()[:16])
"""

NOISE = ("I0000 ", "WARNING: All log messages before absl")
"""What TensorFlow says before its log level counts."""

IMAGE = "envlock-demo"
UNREACHABLE = "error: cannot look up "
"""How `envlock build` begins its error where no registry is reached: a failing engine has the same exit code."""

QUIET = {"TF_CPP_MIN_LOG_LEVEL": "3", "CUDA_VISIBLE_DEVICES": "-1"}


class Ran(NamedTuple):
    """How a command ended: its exit code, and the lines that it printed."""

    code: int
    output: list[str]


def main() -> int:
    """Run the demo; return 0 when every step came out as it must."""
    with tempfile.TemporaryDirectory(prefix="envlock-demo-") as folder:
        Path(folder, "train.py").write_text(TRAIN, encoding="utf-8")
        print(f"# train.py\n{TRAIN}")
        steps = [
            step(folder, "1. Lock this environment.", ["envlock", "capture"], 0),
            step(folder, "2. See what was locked.", ["envlock", "show"], 0, lines=48),
            step(folder, "3. It is still the locked one.", ["envlock", "verify"], 0),
        ]
        locked = run(folder, "4. So the script runs.", ["python", "train.py"])
        print_verdict(locked.code, 0)
        steps += [
            locked.code == 0,
            step(
                folder,
                "5. Turn oneDNN off, as a colleague's shell might, with the check switched to a warning: the bits.",
                ["python", "train.py"],
                0,
                environ={"TF_ENABLE_ONEDNN_OPTS": "0", "ENVLOCK_MODE": "warn"},
            ),
            step(
                folder,
                "6. With the check on, the script refuses to start, and says why.",
                ["python", "train.py"],
                1,
                environ={"TF_ENABLE_ONEDNN_OPTS": "0"},
            ),
            step(
                folder,
                "7. So does the command line.",
                ["envlock", "verify"],
                1,
                environ={"TF_ENABLE_ONEDNN_OPTS": "0"},
            ),
            step(
                folder,
                "8. `envlock run` puts the variables back as they were locked, and starts it.",
                ["envlock", "run", "--", "python", "train.py"],
                0,
                environ={"TF_ENABLE_ONEDNN_OPTS": "0"},
            ),
            *build(folder, find_bits(locked)),
        ]
    failed = steps.count(False)
    print(f"demo: {len(steps) - failed} steps came out as they must, {failed} did not")
    return 1 if failed else 0


def find_bits(ran: Ran) -> str | None:
    """Return what a run of the script printed of its gradient; None if it did not come so far."""
    return next(
        (line.strip() for line in ran.output if line.startswith("bits of the gradient")), None
    )


def build(folder: str, bits: str | None) -> list[bool]:
    """Build an image, or what it consists of where no engine or no registry is; return how the steps came out.

    `bits` is what the script printed outside.
    """
    try:
        engine = find("auto")
    except EnvlockError as error:
        print(f"\nno container engine: {error.message}")
        return scratch(folder)
    title = "9. Build a container that is this environment, from the lockfile alone."
    built = run(folder, title, ["envlock", "build", "--tag", IMAGE])
    if any(line.startswith(UNREACHABLE) for line in built.output):
        print("(no registry is reached, so here is what the image consists of)")
        return scratch(folder)
    print_verdict(built.code, 0)
    if built.code != 0:
        return [False]
    program = engine.name if engine.name in ("podman", "buildah") else "docker"
    # buildah builds, and runs no image by its name; a daemon can be reached without a client.
    if program == "buildah" or shutil.which(program) is None:
        return [True]
    return [True, *start(folder, program, bits)]


def start(folder: str, program: str, bits: str | None) -> list[bool]:
    """Run the script in the image, as it was locked and with the change; return how the steps came out."""
    begin = [program, "run", "--rm", "--interactive", "--network=none"]
    inside = [IMAGE, "python", "-"]
    quiet = [f"--env={name}={value}" for name, value in QUIET.items()]
    inner = run(
        folder,
        "10. In it, the script computes the same bits.",
        [*begin, *quiet, *inside],
        script="train.py",
    )
    is_same = bits is not None and find_bits(inner) == bits
    verdict = "the same bits" if is_same else f"but {bits} was expected"
    print(f"(exit code {inner.code}, {verdict})", flush=True)
    title = "11. The container refuses to start, too, where something differs."
    changed = [*begin, "--env=TF_ENABLE_ONEDNN_OPTS=0", *inside]
    return [is_same, step(folder, title, changed, 1, script="train.py")]


def scratch(folder: str) -> list[bool]:
    """Install into a new environment what an image would have, by hash and without a network; return how it came out.

    It is taken from the build context, or where no registry is reached, from the wheelhouse.
    """
    dry_run = ["envlock", "build", "--dry-run", "--quiet"]
    out = [step(folder, "9. The Dockerfile, before anything is downloaded.", dry_run, 0, lines=24)]
    write = ["envlock", "build", "--output", "context"]
    title = "10. What it is built from: wheels, proven by their RECORD, and the base by digest."
    code = run(folder, title, write).code
    print(f"(exit code {code})", flush=True)
    if code == 0:
        requirements = unpacked(Path(folder, "context"), Path(folder, "layers"))
    else:
        out.append(
            step(
                folder,
                "Without the registry: prove the wheels.",
                ["envlock", "capture", "--hashes"],
                0,
            )
        )
        export = [
            "envlock",
            "export",
            "--format",
            "requirements",
            "--wheelhouse",
            "wheelhouse",
            "-o",
            "wheels.txt",
        ]
        out.append(step(folder, "Write them as pip wants them.", export, 0))
        requirements = [Path(folder, "wheels.txt")]
    make = ["python", "-m", "venv", "--without-pip", "scratch"]
    out.append(
        step(
            folder,
            "11. Install it elsewhere, as the build does: by hash, without a network.",
            make,
            0,
        )
    )
    install = [
        "python",
        "-m",
        "pip",
        "--python",
        "scratch/bin/python",
        "install",
        "--quiet",
        "--no-index",
        "--no-deps",
    ]
    install += ["--no-compile", "--require-hashes"]
    for file in requirements:
        links = (
            []
            if file.name == "wheels.txt"
            else ["--find-links", str(file.parent.relative_to(folder))]
        )
        command = [*install, *links, "--requirement", str(file.relative_to(folder))]
        out.append(step(folder, "", command, 0))
    verify = ["envlock", "verify", "--python", "scratch/bin/python"]
    return [*out, step(folder, "12. It is the locked environment.", verify, 0)]


def unpacked(context: Path, target: Path) -> list[Path]:
    """Unpack the wheels of a context; return the file of requirements of each layer."""
    for file in sorted(context.glob("*.tar")):
        with tarfile.open(file) as tar:
            # Not by extractall(filter=...), which Debian 12's Python 3.11.2 does not know.
            tar.extraction_filter = getattr(tarfile, "data_filter", None)
            tar.extractall(target, [each for each in tar if each.name.startswith("wheels/")])
    return sorted(target.glob("wheels/*/requirements.txt"))


def step(
    folder: str,
    title: str,
    command: list[str],
    expected: int,
    *,
    environ: dict[str, str] | None = None,
    lines: int = 0,
    script: str | None = None,
) -> bool:
    """Say, run and show one command; return whether its exit code was the expected one."""
    code = run(folder, title, command, environ=environ, lines=lines, script=script).code
    print_verdict(code, expected)
    return code == expected


def print_verdict(code: int, expected: int) -> None:
    """Say whether an exit code is the expected one."""
    verdict = f"but {expected} was expected" if code != expected else "as it must be"
    print(f"(exit code {code}, {verdict})", flush=True)


def run(
    folder: str,
    title: str,
    command: list[str],
    *,
    environ: dict[str, str] | None = None,
    lines: int = 0,
    script: str | None = None,
) -> Ran:
    """Say, run and show one command, of whose output the first lines, if a number is given.

    A script is given to its standard input.
    """
    changed = environ or {}
    shown = " ".join([*(f"{name}={value}" for name, value in changed.items()), *command])
    if script is not None:
        shown += f" < {script}"
    if sys.stdout.isatty():
        title = f"\033[1m{title}\033[0m"
    print(f"\n{title}\n$ {shown}", flush=True)
    # The command line lives apart from the environment that it locks, and finds the active one.
    home = TOOL if command[0] == "envlock" else BIN
    program = str(home / command[0]) if (home / command[0]).exists() else command[0]
    active = {"VIRTUAL_ENV": str(ENVIRONMENT), "PATH": f"{BIN}:{os.environ['PATH']}"}
    with Path(folder, script or os.devnull).open(encoding="utf-8") as given:
        started = subprocess.Popen(
            [program, *command[1:]],
            cwd=folder,
            env={**os.environ, **active, **QUIET, **changed},
            stdin=given,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
    with started as process:
        # Line by line, as a build takes a minute.
        output: list[str] = []
        for line in process.stdout or ():
            if line.startswith(NOISE):
                continue
            output.append(line)
            if not lines or len(output) <= lines:
                print(line, end="", flush=True)
    if lines and len(output) > lines:
        print(f"... ({len(output) - lines} more lines)")
    return Ran(process.returncode, output)


if __name__ == "__main__":
    sys.exit(main())
