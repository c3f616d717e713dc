"""The demo: lock the environment that runs this, verify it, change one thing that changes bits, be refused.

Needs a real TensorFlow and envlock in its environment, neither GPU nor Docker. `make demo` makes one and runs this.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

BIN = Path(sys.executable).parent

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

QUIET = {"TF_CPP_MIN_LOG_LEVEL": "3", "CUDA_VISIBLE_DEVICES": "-1"}


def main() -> int:
    """Run the demo; return 0 when every step came out as it must."""
    with tempfile.TemporaryDirectory(prefix="envlock-demo-") as folder:
        Path(folder, "train.py").write_text(TRAIN, encoding="utf-8")
        print(f"# train.py\n{TRAIN}")
        steps = [
            step(folder, "1. Lock this environment.", ["envlock", "capture"], 0),
            step(folder, "2. See what was locked.", ["envlock", "show"], 0, lines=48),
            step(folder, "3. It is still the locked one.", ["envlock", "verify"], 0),
            step(folder, "4. So the script runs.", ["python", "train.py"], 0),
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
                folder, "7. So does the command line.", ["envlock", "verify"], 1, environ={"TF_ENABLE_ONEDNN_OPTS": "0"}
            ),
            step(
                folder,
                "8. `envlock run` puts the variables back as they were locked, and starts it.",
                ["envlock", "run", "--", "python", "train.py"],
                0,
                environ={"TF_ENABLE_ONEDNN_OPTS": "0"},
            ),
        ]
    failed = steps.count(False)
    print(f"demo: {len(steps) - failed} steps came out as they must, {failed} did not")
    return 1 if failed else 0


def step(
    folder: str, title: str, command: list[str], expected: int, *, environ: dict[str, str] | None = None, lines: int = 0
) -> bool:
    """Say, run and show one command; return whether its exit code was the expected one."""
    shown = " ".join([*(f"{name}={value}" for name, value in (environ or {}).items()), *command])
    print(f"\n\033[1m{title}\033[0m\n$ {shown}" if sys.stdout.isatty() else f"\n{title}\n$ {shown}", flush=True)
    done = subprocess.run(
        [str(BIN / command[0]), *command[1:]],
        cwd=folder,
        env={**os.environ, **QUIET, **(environ or {})},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    output = [line for line in done.stdout.splitlines() if not line.startswith(NOISE)]
    if lines and lines < len(output):
        output[lines:] = [f"... ({len(output) - lines} more lines)"]
    print("\n".join(output))
    verdict = "as it must be" if done.returncode == expected else f"but {expected} was expected"
    print(f"(exit code {done.returncode}, {verdict})", flush=True)
    return done.returncode == expected


if __name__ == "__main__":
    sys.exit(main())
