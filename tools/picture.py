"""Draw docs/picture.svg: the commands of the README's first section, run in a terminal, with what they print.

python tools/picture.py           run them and write the picture (the environment needs TensorFlow and envlock)
python tools/picture.py --check   run them, and exit 1 if they print something else than the picture shows
"""

from __future__ import annotations

import difflib
import os
import pty
import re
import shlex
import subprocess
import sys
import tempfile
from io import StringIO
from pathlib import Path
from xml.etree import ElementTree as ET

from rich.console import Console
from rich.text import Text

ROOT = Path(__file__).resolve().parents[1]
PICTURE = ROOT / "docs/picture.svg"
SECTION = "## Sixty seconds to the first refusal"
WIDTH = 100
FONT = re.compile(r"@font-face \{.*?\}\s*", re.DOTALL)
"""Fonts that rich would load from the network; without them the reader's own monospaced one is taken."""
ENVIRONMENT = re.compile(r"(TensorFlow \S+, )?\d+ packages")
"""What differs between environments in which the commands print the same otherwise."""
LOADED = re.compile(r"importing \S+, to see what it loads ")
"""What is said only where there is something to import."""


def main() -> int:
    """Write the picture, or with `--check` compare it; return the exit code."""
    drawn = draw(session(commands()))
    if "--check" not in sys.argv[1:]:
        PICTURE.write_text(drawn, encoding="utf-8")
        return 0
    shown, printed = words(PICTURE.read_text(encoding="utf-8")), words(drawn)
    if shown == printed:
        return 0
    print(
        "\n".join(
            difflib.unified_diff(shown, printed, "docs/picture.svg", "printed now", lineterm="")
        )
    )
    print("out of date: docs/picture.svg (run: make picture)")
    return 1


def commands() -> list[str]:
    """Return what the README's first section tells its reader to type after the installation."""
    section = (
        (ROOT / "README.md")
        .read_text(encoding="utf-8")
        .partition(f"{SECTION}\n")[2]
        .partition("\n## ")[0]
    )
    block = re.search(r"```console\n(.*?)```", section, flags=re.DOTALL)
    assert block is not None, f"README.md has no console block under {SECTION!r}"
    return re.findall(r"^\$ (.*)$", block[1], flags=re.MULTILINE)


def session(lines: list[str]) -> str:
    """Return what a terminal shows of a shell in an empty folder that runs these lines."""
    shown = ((shlex.quote(f"$ {line}"), line) for line in lines)
    script = "\n".join(
        f"code=$?; printf '%s\\n' {prompt}; (exit $code)\n{line}" for prompt, line in shown
    )
    environ = {
        "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.defpath]),
        "TERM": "xterm-256color",
        "LANG": "C.UTF-8",
    }
    environ |= {
        name: value for name, value in os.environ.items() if name == "ENVLOCK_WITHOUT_TENSORFLOW"
    }
    ours, theirs = pty.openpty()
    with tempfile.TemporaryDirectory(prefix="envlock-picture-") as folder:
        active = Path(folder, ".venv")
        active.symlink_to(os.environ.get("VIRTUAL_ENV", sys.prefix))
        environ["VIRTUAL_ENV"] = str(active)
        argv = ["/bin/sh", "-c", script]
        with subprocess.Popen(
            argv,
            cwd=folder,
            env={**environ, "HOME": folder},
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
        ):
            os.close(theirs)
            printed = b"".join(iter(lambda: _read(ours), b""))
    os.close(ours)
    return printed.decode("utf-8").replace("\r\n", "\n").rstrip("\n")


def _read(terminal: int) -> bytes:
    try:
        return os.read(terminal, 1 << 16)
    except OSError:  # EIO: the shell has ended
        return b""


def draw(printed: str) -> str:
    """Return a picture of a terminal that shows this."""
    console = Console(
        record=True, width=WIDTH, file=StringIO(), color_system="truecolor", force_terminal=True
    )
    for line in printed.split("\n"):
        console.print(
            Text(line, style="bold green") if line.startswith("$ ") else Text.from_ansi(line)
        )
    svg = FONT.sub("", console.export_svg(title="envlock", unique_id="envlock"))
    return "".join(f"{line.rstrip()}\n" for line in svg.splitlines() if line.strip())


def words(svg: str) -> list[str]:
    """Return the text of a picture, a command or a message an item, without what is the environment's."""
    texts = [
        each.text or "" for each in ET.fromstring(svg).iter("{http://www.w3.org/2000/svg}text")
    ]
    whole = " ".join(" ".join(texts).split())
    alike = LOADED.sub("", ENVIRONMENT.sub("N packages", whole))
    return re.split(r" (?=\$ |why: |fix: |marks: |x )", alike)


if __name__ == "__main__":
    sys.exit(main())
