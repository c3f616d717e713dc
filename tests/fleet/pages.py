"""The pages of docs/guides/fleet as they stand there: their files are written, and what their commands print is compared.

A block of Python or of a shell whose first comment is the name of a file is that file. In a block `console`, a line
after `$ ` is a command, and what follows is what it prints, both streams: `...` alone stands for any lines, and `[...]`
for anything within a line.
"""

from __future__ import annotations

import re
import shlex
from pathlib import Path

from tests.test_documentation import FENCE, ROOT

PAGES = ROOT / "docs" / "guides" / "fleet"
FILE = re.compile(r"(?:#!.*\n)?# (\w+\.\w+)\n")
COMMAND = re.compile(r"^\$ ((?:.*\\\n)*.*)\n?", re.MULTILINE)
NOISE = re.compile(r"^environment: .*\n", re.MULTILINE)
"""Which environment is active."""
MARK = "--- what the next command prints ---"


def prepared(page: str, folder: Path) -> tuple[list[str], list[str]]:
    """Write the files of a page into a folder; return its commands, and the pattern of what each prints."""
    commands: list[str] = []
    printed: list[str] = []
    for language, block in FENCE.findall((PAGES / f"{page}.md").read_text(encoding="utf-8")):
        named = FILE.match(block)
        if language == "console":
            _, *parts = COMMAND.split(block)
            commands += parts[::2]
            printed += parts[1::2]
        elif named is not None:
            (folder / named[1]).write_text(block, encoding="utf-8")
            (folder / named[1]).chmod(0o755)
    (folder / "pyproject.toml").touch()
    return commands, printed


def script(commands: list[str], folder: Path) -> Path:
    """Return a shell's script that runs the commands, and says where the output of each begins."""
    lines = [f"code=$?; echo; echo {shlex.quote(MARK)}; (exit $code)\n{each}" for each in commands]
    file = folder / "page.sh"
    # The environments of the launchers have no TensorFlow, which `envlock capture` would refuse.
    file.write_text("exec 2>&1\nexport ENVLOCK_WITHOUT_TENSORFLOW=1\n" + "\n".join([*lines, ""]), encoding="utf-8")
    return file


def differences(commands: list[str], printed: list[str], output: str) -> list[str]:
    """Return a sentence for each command that has printed something else than its page has."""
    found = [part.strip("\n") for part in NOISE.sub("", output).split(MARK + "\n")[1:]]
    assert len(found) == len(commands), output
    pairs = zip(commands, printed, found, strict=True)
    return [f"$ {one}\n{text}" for one, expected, text in pairs if not fits(expected, text)]


def fits(expected: str, text: str) -> bool:
    """Return whether a text is what a page has."""
    lines = [re.escape(line).replace(r"\[\.\.\.\]", ".*") for line in expected.strip("\n").split("\n")]
    pattern = "".join("(?:.*\n)*" if line == r"\.\.\." else f"{line}\n" for line in lines)
    return re.fullmatch(pattern, f"{text}\n") is not None
