"""Install a wheel on several Pythons and use it there: `python tools/smoke.py dist/NAME.whl 3.8 3.13`

On each a project's environment gets the wheel, is locked from outside, matches, and is refused when a variable differs:
what a script has. From 3.10 on the command line is installed too, by itself, and verifies that environment.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

OLDEST_FOR_THE_COMMAND_LINE = (3, 10)  # `cli` in pyproject.toml
SCRIPT = "import envlock; envlock.assert_locked()"
CHANGED = {"TF_DETERMINISTIC_OPS": "1"}


def run(*argv: str | Path, cwd: Path, status: int = 0, **environ: str) -> str:
    """Return what a command printed on both streams.

    Raises:
        SystemExit: it ended with another status than `status`.
    """
    # The variables of this checkout would lead into it, and `VIRTUAL_ENV` to the environment of this program.
    hidden = ("PYTHONPATH", "VIRTUAL_ENV")
    variables = {name: value for name, value in os.environ.items() if name not in hidden}
    command = [str(word) for word in argv]
    done = subprocess.run(
        command,
        cwd=cwd,
        env={**variables, **environ},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=600,
        check=False,
    )
    if done.returncode != status:
        text = f"exit code {done.returncode}, not {status}: {' '.join(command)}\n{done.stdout}"
        raise SystemExit(text)
    return done.stdout


def install(version: str, folder: Path, *arguments: str) -> Path:
    """Return the interpreter of a new environment in which pip would install this."""
    uv = Path(sys.executable).with_name("uv")
    run(uv, "venv", "--quiet", "--python", version, folder, cwd=folder.parent)
    python = folder / "bin" / "python"
    run(uv, "pip", "install", "--quiet", "--python", python, *arguments, cwd=folder.parent)
    return python


def use(wheel: Path, version: str, folder: Path) -> None:
    """Install, lock, match, refuse.

    Raises:
        SystemExit: one of them went wrong.
    """
    python = install(version, folder / "project", str(wheel), "packaging")
    lock = folder / "envlock.lock"
    capture = ("-m", "envlock", "capture", "--without-tensorflow", "--python", python)
    run(sys.executable, *capture, "--output", lock, cwd=folder)
    run(python, "-c", SCRIPT, cwd=folder)
    refusal = run(python, "-c", SCRIPT, cwd=folder, status=1, **CHANGED)
    if "EnvironmentMismatch" not in refusal:
        raise SystemExit(f"Python {version}: refused for another reason\n{refusal}")
    if tuple(map(int, version.split("."))) >= OLDEST_FOR_THE_COMMAND_LINE:
        # As users do it who trust hashes only: `make dist` writes this file.
        release = "-".join(wheel.name.split("-")[:2])
        hashed = wheel.with_name(f"{release}.requirements.txt")
        options = ("--require-hashes", "--find-links", str(wheel.parent), "-r", str(hashed))
        tool = install(version, folder / "tool", *options)
        verify = (tool.with_name("envlock"), "verify", lock, "--python", python)
        run(*verify, cwd=folder)
        run(*verify, cwd=folder, status=1, **CHANGED)


def main(wheel: str, *versions: str) -> None:
    """Use a wheel on each of the versions, and say which went well."""
    for version in versions:
        with tempfile.TemporaryDirectory() as folder:
            use(Path(wheel).resolve(), version, Path(folder))
        print(f"Python {version}: locked, matched, refused")


if __name__ == "__main__":
    main(*sys.argv[1:])
