"""The line that takes a flag out of a variable, in a real shell: the rest stays, and no lone blank is left."""

from __future__ import annotations

import subprocess

import pytest

from envlock.diagnosis import variable_values

pytestmark = pytest.mark.processes

FLAG = "--xla_a"


def after(flags: str, instead: str = "") -> str:
    line = variable_values.make_removal_line("XLA_FLAGS", FLAG, instead)
    script = f'{line}; printf %s "$XLA_FLAGS"'
    environ = {"PATH": "/usr/bin:/bin", "XLA_FLAGS": flags}
    return subprocess.run(["/bin/sh", "-ec", script], env=environ, capture_output=True, text=True, check=True).stdout


@pytest.mark.parametrize(
    ("flags", "left"),
    [
        (FLAG, ""),  # not a blank, which XLA would take for the name of a file
        (f" {FLAG}=1 ", ""),
        (f"{FLAG}=1 --xla_ab=2", "--xla_ab=2"),
        (f"--xla_b='x y' {FLAG}=/some/where", "--xla_b='x y'"),
        (f"--xla_c=$HOME {FLAG} --xla_d=`id`", "--xla_c=$HOME --xla_d=`id`"),
        ("--xla_ab=1 --no--xla_a", "--xla_ab=1 --no--xla_a"),
    ],
)
def test_the_flag_goes_and_the_rest_stays(flags: str, left: str) -> None:
    assert after(flags) == left


def test_another_stands_in_its_place() -> None:
    assert after(f"--xla_b {FLAG}=1 --xla_c", "--xla_d=true") == "--xla_b --xla_d=true --xla_c"
