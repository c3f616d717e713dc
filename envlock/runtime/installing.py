"""How envlock's extras are installed, in one place: no index has a release of envlock yet."""

from __future__ import annotations


def explain_installation(*extras: str, beside_tensorflow: bool = False) -> str:
    """Return the command that installs envlock with some extras, and where it is run.

    The command line is a tool of its own; what notebooks need is installed beside TensorFlow.
    """
    program = "pip install" if beside_tensorflow else "uv tool install"
    return f'in a checkout of envlock: {program} ".[{",".join(extras)}]"'
