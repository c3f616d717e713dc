"""The definition file for Apptainer, done by Docker stage by stage: its shell lines give the locked environment.

Apptainer itself is not in Debian 12, and is not run.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from envlock.image.payload import list_wheels, write_context
from envlock.image.plan import Base, plan
from tests.exhaustive import exhaustive
from tests.image.bed.session import Bed
from tests.image.plans import model
from tests.image.stocked import captured, demo_wheel

pytestmark = pytest.mark.engine


def sections(stage: str) -> list[tuple[str, list[str]]]:
    """Return the sections of a stage: the line after the `%`, and its lines."""
    parts = re.split(r"^%", stage, flags=re.MULTILINE)[1:]
    split = [(part.partition("\n")[0], part.splitlines()[1:]) for part in parts]
    return [(name, [line.strip() for line in lines if line.strip()]) for name, lines in split]


def translated(definition: str, folder: Path) -> str:
    """Return a Dockerfile that does what a definition says; scripts go into the folder."""
    lines = []
    run: list[str] = []
    for number, text in enumerate(definition.split("Bootstrap: docker\n")[1:]):
        head = dict(line.split(": ", 1) for line in text.splitlines()[:2])
        lines += [f"FROM {head['From']} AS {head['Stage']}", "USER 0:0"]
        for name, held in sections(text):
            if name.startswith("files"):
                origin = f"--from={name.split()[2]} " if "from" in name else ""
                lines += [f"COPY {origin}{line}" for line in held]
            if name == "post":
                (folder / f"post-{number}").write_text("\n".join(held) + "\n", encoding="ascii")
                lines += [f"COPY post-{number} /post", 'RUN ["sh", "/post"]']
            if name in ("environment", "runscript"):
                run += held
    (folder / "run").write_text("\n".join(run) + "\n", encoding="ascii")
    return "\n".join([*lines, "COPY run /run.sh", "USER 1000:1000", 'ENTRYPOINT ["sh", "/run.sh"]', ""])


@exhaustive
def test_its_lines_give_the_locked_environment(bed: Bed, tmp_path: Path) -> None:
    stock, context = tmp_path / "wheelhouse", tmp_path / "context"
    demo_wheel(stock, "alpha", "1.0")
    held: dict[str, Any] = captured(bed, bed.python, stock, system=False)
    base = Base(bed.python, "wheels", (), ("python3",), ())
    write_context(plan(model(held), base, list_wheels(stock)), stock, context)
    text = translated((context / "apptainer.def").read_text(encoding="ascii"), context)
    (context / "Dockerfile").write_text(text, encoding="ascii")
    (context / ".dockerignore").unlink()
    image = bed.engine.docker("build", "-q", "--network=none", context).stdout.strip()
    ran = bed.engine.docker("run", "--rm", "--network=none", image, "alpha")
    assert ran.stdout == "1.0\n", ran.stderr
    options = ("--rm", "--network=none", "-e", "TF_CUDNN_DETERMINISTIC=1")
    refused = bed.engine.docker("run", *options, image, "alpha", check=False)
    assert (refused.returncode, refused.stdout) == (1, "")
    assert "environ.TF_CUDNN_DETERMINISTIC" in refused.stderr
