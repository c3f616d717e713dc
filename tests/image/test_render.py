"""Generated text: whole files, and that templates print nothing that nobody has looked at."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import jinja2
import pytest

from envlock.image import render
from envlock.image.additions import Additions, CopiedFile
from envlock.image.bases.candidate import PythonArchive
from envlock.image.layers import NAMES
from envlock.image.payload import list_tars
from envlock.image.plan import Base, BuildPlan, base_plan
from envlock.image.quoting import safe
from envlock.lock.models import DebianPackages
from envlock.runtime.errors import LockfileError
from tests.golden_files import assert_as_golden
from tests.image.plans import BASES, DEBIAN, lock, planned, without

ROOT = Path(__file__).resolve().parents[2]
GOLDEN = ROOT / "tests" / "golden"

PUBLIC_25_02 = "sha256:c83b37d26f19ab00d8a13cf974edd079c3d099918ec3110c304a989d6e2f75d5"

NOT_PORTABLE = re.compile(
    r"^#\s*(syntax|escape|check)\s*=|<<|--mount|--link|--chmod|--checksum|RUN --network", re.MULTILINE
)
"""What one of the builders refuses, ignores, or takes for something else."""


def legacy() -> BuildPlan:
    """Return the plan of stock TensorFlow 1.15 on Python 3.7, from when locks were written by hand."""
    held = without(lock(), "mine", "tensorflow", "keras")
    facts = {**held["facts"], "python": {"version": "3.7.17"}, "tensorflow": {"version": "1.15.5"}, "environ": {}}
    return planned("wheels", {**held, "facts": facts})


def debian() -> DebianPackages:
    return DebianPackages.model_validate(DEBIAN)


ADDED = Additions(
    (CopiedFile("train.py", "ab" * 32, False, Path("train.py")),),
    "/app",
    "1234:1234",
    ("python", "train.py"),
    (("TEAM", "vision"),),
)
ARCHIVE = PythonArchive("cpython-3.11.7+20240107-x86_64-unknown-linux-gnu-install_only.tar.gz", "ab" * 32)
PLANS: dict[str, Callable[[], BuildPlan]] = {
    "ngc": lambda: planned("ngc"),
    "ngc.deterministic": lambda: planned("ngc", deterministic=True),
    "captured": lambda: planned("captured"),
    "cuda": lambda: planned("cuda"),
    "cuda.apt": lambda: replace(planned("cuda"), base=replace(BASES["cuda"], apt=debian())),
    "wheels": lambda: planned("wheels"),
    "wheels.legacy": legacy,
    "wheels.standalone": lambda: replace(planned("wheels"), base=replace(BASES["wheels"], python_archive=ARCHIVE)),
    "wheels.project": lambda: planned("wheels", added=ADDED),
}


@pytest.mark.parametrize("name", ["ngc", "cuda", "wheels.project"])
def test_golden_definitions(name: str) -> None:
    text = re.sub(r"(?<=tf-envlock.lock sha256:)[0-9a-f]{64}", "0" * 64, render.apptainer(PLANS[name]()))
    assert_as_golden(text, GOLDEN / f"apptainer.{name}.def")


@pytest.mark.parametrize("name", PLANS)
def test_a_definition_has_the_steps_of_the_dockerfile(name: str) -> None:
    plan = PLANS[name]()
    definition = [line.strip() for line in render.apptainer(plan).splitlines()]
    runs = [json.loads(line[4:]) for line in render.dockerfile(plan).splitlines() if line.startswith("RUN ")]
    assert runs
    assert [line for line in definition if ".py 315532800" in line] == [" ".join(run) for run in runs]


@pytest.mark.parametrize("name", PLANS)
def test_golden_files(name: str) -> None:
    """Without the digest of the lock, which every new fact changes; that it is the lock's is tested with the plan."""
    text = re.sub(r"(?<=tf-envlock.lock=.sha256:)[0-9a-f]{64}", "0" * 64, render.dockerfile(PLANS[name]()))
    assert_as_golden(text, GOLDEN / f"Dockerfile.{name}")


@pytest.mark.parametrize("name", PLANS)
def test_only_what_every_builder_knows(name: str) -> None:
    text = render.dockerfile(PLANS[name]())
    assert NOT_PORTABLE.search(text) is None
    assert text.isascii()
    bases = [line for line in text.splitlines() if line.startswith("FROM")]
    known = re.compile(rf"FROM \S+@sha256:[0-9a-f]{{64}}( AS (python|built))?|FROM built AS ({'|'.join(NAMES)}|lock)")
    assert [line for line in bases if known.fullmatch(line) is None] == []
    assert re.findall(r"^USER (.*)$", text, re.MULTILINE)[-1] == PLANS[name]().user


@pytest.mark.parametrize("name", PLANS)
def test_a_stage_for_wheels_or_the_lock_has_one_step_and_follows_what_seldom_changes(name: str) -> None:
    """Otherwise a changed wheel would run the steps of other layers again."""
    plan = PLANS[name]()
    text, _, _ = render.dockerfile(plan).partition("\n# The image: ")
    shared, *own = re.split(r"^FROM built AS ", text, flags=re.MULTILINE)
    names = [*(layer.name for layer in plan.layers), "lock"]
    assert [text.partition("\n")[0] for text in own] == names
    assert [re.findall(r"^(?:ADD|RUN|COPY) .*$", text, re.MULTILINE)[0] for text in own] == [
        f"ADD {name}.tar /" for name in names
    ]
    assert [text.count("\nRUN ") for text in own] == [1] * len(own)
    assert ', "runtime"]' in shared


def test_what_is_not_portable_is_recognised() -> None:
    for line in ("# syntax=docker/dockerfile:1", "RUN <<EOF", "COPY --link a b", "RUN --mount=type=cache x"):
        assert NOT_PORTABLE.search(f"FROM a\n{line}\n") is not None


def test_the_committed_base_is_what_the_renderer_gives() -> None:
    base = Base(f"nvcr.io/nvidia/tensorflow:25.02-tf2-py3@{PUBLIC_25_02}", "ngc")
    assert (ROOT / "Dockerfile.base").read_text(encoding="utf-8") == render.dockerfile(base_plan(base))


def test_the_context_is_a_dockerfile_and_tars_and_what_keeps_others_out() -> None:
    assert render.dockerignore().splitlines()[1:] == ["*", "!Dockerfile", "!*.tar"]


def test_requirements_are_hashed_and_cut_by_what_changes_together() -> None:
    made = {layer.name: render.requirements(layer).splitlines() for layer in planned("wheels").layers}
    assert {name: [line.split("==")[0] for line in lines] for name, lines in made.items()} == {
        "nvidia": ["nvidia-nccl-cu12"],
        "tensorflow": ["tensorflow"],
        "packages": ["keras", "numpy", "nvidia-ml-py", "tensorflow-datasets"],
    }
    lines = [line for held in made.values() for line in held]
    assert all(re.fullmatch(r"[a-z0-9-]+==[0-9.]+ --hash=sha256:[0-9a-f]{64}", line) for line in lines)


def test_debian_packages_are_by_hash_in_a_tar_of_the_context() -> None:
    plan = PLANS["cuda.apt"]()
    assert render.debian(plan) == f"libsndfile1 amd64 1.2.0-1+deb12u1 {'de' * 32}\nsounds all 1:2~3 {'de' * 32}\n"
    held = ["wheels/apt/libsndfile1_amd64.deb", "wheels/apt/packages.txt", "wheels/apt/sounds_all.deb"]
    assert sorted(list_tars(plan)["apt.tar"]) == held
    assert [each.file for each in plan.debian] == ["libsndfile1_1.2.0-1+deb12u1_amd64.deb", "sounds_1%3a2~3_all.deb"]
    assert "apt.tar /context/apt.tar" in render.apptainer(plan)


@pytest.mark.parametrize("value", ["text", 'a"b', None, ["a"]])
def test_a_template_prints_safe_text_only(value: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = jinja2.DictLoader({"dockerignore.j2": "{{ version }}\n"})
    monkeypatch.setattr(render._load_templates(), "loader", folder)
    monkeypatch.setattr(render, "safe", lambda text, kind, path: value)
    with pytest.raises(TypeError) as raised:
        render._render("dockerignore.j2", {"version": value})
    assert str(raised.value) == f"a template printed the unchecked value {value!r}"
    assert render._render("dockerignore.j2", {"version": safe("1", "number", "x")}) == "1\n"


def test_a_name_that_nobody_has_given_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(render._load_templates(), "loader", jinja2.DictLoader({"x.j2": "{{ gone }}"}))
    with pytest.raises(jinja2.UndefinedError):
        render._render("x.j2", {})


def test_an_entrypoint_of_a_hostile_base_is_refused() -> None:
    bad = replace(BASES["ngc"], entrypoint=("/bin/sh", "-c", 'x"]\nRUN id'))
    with pytest.raises(LockfileError) as raised:
        render.dockerfile(replace(planned("ngc"), base=bad))
    assert raised.value.message == (
        '`base_image.entrypoint` cannot go into an image: `x"]\\nRUN id` is not a valid word'
    )
