"""Start programs on a processor that this machine does not have, with the user-mode emulator of QEMU."""

from __future__ import annotations

import os
import platform
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from envlock.guest import launch
from envlock.lock.temporary import open_draft_folder
from envlock.numerics.canary.processor_identity import render_cpuinfo
from envlock.runtime.errors import FactError, UsageError

PROGRAMS = ("qemu-x86_64", "qemu-x86_64-static")
"""Debian's packages qemu-user and qemu-user-static."""
INSTALL = "install it: `apt-get install qemu-user` on Debian and Ubuntu"
MACHINE = "x86_64"
TIMEOUT = 1800.0
"""Seconds that an emulated child may take: it computes at a fiftieth of the speed."""
SHORT = 60.0  # seconds for what answers in one: the list of models, and CPUID
PROCESSORS = 2
"""As many as the canary has threads."""


@dataclass(frozen=True)
class Emulation:
    """A processor that is emulated, or that of this machine with other variables.

    Attributes:
        model: its name, as QEMU has it; None for this machine's.
        command: what starts a program on it; empty for this machine's.
        environ: the variables to start with.
    """

    model: str | None
    command: tuple[str, ...]
    environ: Mapping[str, str]

    def ask(self, words: Sequence[str], python: Path | None) -> launch.Ended:
        """Run a program on it, as `launch.ask_python` does.

        Raises:
            UsageError: the interpreter cannot be run.
        """
        if not self.command:
            return launch.ask_python(words, python, timeout=TIMEOUT, environ=self.environ)
        return launch.ask_emulated(
            self.command, words, python, timeout=TIMEOUT, environ=self.environ
        )


@contextmanager
def open_emulation(
    model: str, python: Path | None, variables: Mapping[str, str] | None = None
) -> Iterator[Emulation]:
    """Yield a processor by the name of its model.

    Args:
        model: one of `list_models()`, in any case.
        python: an interpreter that runs on it; this one when not given.
        variables: to set beside those of this process.

    Raises:
        UsageError: there is no emulator, or no such model.
        FactError: the emulator does not work.
    """
    emulator = find_emulator()
    name = find_model(model, list_models(emulator))
    command = (str(emulator), "-cpu", name)
    environ = {**os.environ, **(variables or {})}
    words = launch.build_text_arguments(launch.read("cpu_identity"), {})
    # QEMU shows the /proc/cpuinfo of this machine, so one is made of what the emulated CPUID says.
    ended = launch.ask_emulated(command, words, python, timeout=SHORT, environ=environ)
    if not ended.answers:
        raise FactError(
            f"{emulator.name} {ended.ending} as a {name}: {ended.last_words}",
            hint="try another model",
        )
    text = render_cpuinfo(ended.answers[0]["registers"], PROCESSORS)
    with open_draft_folder(None) as folder:
        # QEMU looks into this folder first for each absolute path; in it is only what it does not emulate itself.
        file = folder / "proc" / "cpuinfo"
        file.parent.mkdir()
        file.write_text(text, encoding="ascii", errors="replace")
        yield Emulation(name, (*command, "-L", str(folder)), environ)


def find_emulator() -> Path:
    """Return the emulator of x86-64.

    Raises:
        UsageError: it is not installed, or this machine is another one, whose Python it cannot run.
    """
    if platform.machine() != MACHINE:
        raise UsageError(
            f"a processor is emulated on {MACHINE} only, and this is {platform.machine()}",
            hint="run it on a machine of the lockfile's architecture",
        )
    for program in PROGRAMS:
        found = shutil.which(program)
        if found is not None:
            return Path(found)
    raise UsageError("QEMU's user-mode emulator is missing", hint=INSTALL)


def list_models(emulator: Path) -> list[str]:
    """Return the names of the models that an emulator knows.

    Raises:
        UsageError: it cannot be run.
    """
    ended = launch.ask(["-cpu", "help"], emulator, timeout=SHORT)
    names = []
    for line in ended.output.decode("utf-8", "replace").splitlines():
        # A line has the architecture, the name and a description.
        words = line.split()
        if len(words) > 1 and words[0] == "x86":
            names.append(words[1])
    return names


def find_model(wanted: str, names: Sequence[str]) -> str:
    """Return the model that is meant.

    Raises:
        UsageError: no model has that name.
    """
    for name in names:
        if name.lower() == wanted.lower():
            return name
    alike = [name for name in names if name.lower().startswith(wanted.lower()[:3])]
    shown = ", ".join(alike[:8] or names[:8])
    raise UsageError(f"unknown model of a processor: {wanted}", hint=f"such as {shown}")
