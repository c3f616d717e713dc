"""Pages whose blocks are run: one shell a page, each command's output compared with what the page shows.

`...` stands for any text within a line, and a line of nothing else for any number of lines. A comment such as
`<!-- $ cp good.lock envlock.lock -->` is run as well, prepares what follows, and prints nothing. A block of another language
that begins with a comment such as `# train.py` is written into that file; other blocks of Python are run, and must not fail.
"""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

BLOCK = re.compile(
    r"^```console\n(?P<console>.*?)^```$|^<!-- (?P<hidden>\$ .*?) -->$"
    r"|^```(?:python|toml|yaml)\n(?:# (?P<file>[\w.-]+)\n)(?P<text>.*?)^```$|^```python\n(?P<python>.*?)^```$",
    re.MULTILINE | re.DOTALL,
)
ENDED = "\x1e"
"""What the shell prints after each command, which no command prints itself."""


@dataclass(frozen=True)
class Step:
    """A command of a page, and the lines that are shown below it."""

    command: str
    shown: list[str]


def steps(page: Path) -> Iterator[Step]:
    """Yield the commands of all blocks, in order."""
    for found in BLOCK.finditer(page.read_text(encoding="utf-8")):
        if found["file"]:
            yield Step(f"cat > {found['file']} <<'END_OF_BLOCK'\n{found['text']}END_OF_BLOCK", [])
            continue
        if found["python"]:
            yield Step(f"python - >block.out 2>&1 <<'END_OF_BLOCK' || cat block.out\n{found['python']}END_OF_BLOCK", [])
            continue
        block = found["console"] or found["hidden"]
        parts = re.split(r"^\$ ", block, flags=re.MULTILINE)
        assert parts[0] == "", f"{page.name}: a console block begins with a command: {parts[0]}"
        for part in parts[1:]:
            command, *shown = part.rstrip("\n").split("\n")
            yield Step(command, shown)


def run(page: Path, folder: Path, environ: Mapping[str, str]) -> list[str]:
    """Run the commands of a page in a folder; return where what they print is not what the page shows."""
    wanted = list(steps(page))
    assert wanted, f"{page.name} has no console block"
    script = "".join(f"{step.command}\nprintf '{ENDED}'\n(exit $code)\n" for step in wanted)
    script = script.replace(f"\nprintf '{ENDED}'", f"\ncode=$?; printf '{ENDED}'")  # `echo $?` sees the last command's
    done = subprocess.run(
        ["bash", "-c", script],
        cwd=folder,
        env={**environ, "COLUMNS": "120"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        timeout=900,
        text=True,
        check=False,
    )
    *printed, rest = done.stdout.split(ENDED)
    if len(printed) != len(wanted):
        return [f"{page.name}: the shell stopped after {len(printed)} of {len(wanted)} commands: {rest}"]
    return [
        f"{page.name}: $ {step.command}\nshown:\n{os.linesep.join(step.shown)}\nprinted:\n{text}"
        for step, text in zip(wanted, printed, strict=True)
        if not agrees(step.shown, text)
    ]


def run_command(command: str, folder: Path, environ: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
    """Run a line as a shell does; return its exit code and what it prints."""
    return subprocess.run(
        ["bash", "-c", command], cwd=folder, env=environ, capture_output=True, text=True, timeout=600, check=False
    )


def agrees(shown: list[str], printed: str) -> bool:
    """Return whether a text is what the lines of a page show; which interpreter a variable names, a page leaves out."""
    printed = re.sub(r"^environment: .* \(ENVLOCK_PYTHON\)\n", "", printed, flags=re.MULTILINE)
    pattern = "".join(
        r"(?:.*\n)*" if line == "..." else re.escape(line).replace(r"\.\.\.", ".*") + r"\n" for line in shown
    )
    return re.fullmatch(pattern, printed) is not None


def tools(folder: Path, envlock: str, python: str) -> Path:
    """Make a folder for PATH, with an `envlock` and a `uv` that one interpreter runs, and the `python` of an environment."""
    folder.mkdir()
    commands = {"envlock": f'"{envlock}" -P -m envlock', "python": f'"{python}"', "uv": f'"{envlock}" -m uv'}
    for name, command in commands.items():
        file = folder / name
        file.write_text(f'#!/bin/sh\nexec {command} "$@"\n', encoding="utf-8")
        file.chmod(0o755)
    return folder
