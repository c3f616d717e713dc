"""Capturing inside an image: nothing is installed, nothing stays, and the lock is one that can be built."""

from __future__ import annotations

import shutil
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from envlock.image.engines.container_run import Finished
from envlock.image.engines.engine_errors import EngineError
from envlock.image.inside import look_inside
from envlock.lock.document import load
from envlock.runtime.errors import FactError
from tests.exhaustive import exhaustive
from tests.image.bed.session import Bed
from tests.image.project import Project
from tests.image.stocked import demo_wheel
from tests.locks import document


def answering(*answers: Finished, architecture: str = "amd64") -> Any:
    left = list(answers)
    image = {"Os": "linux", "Architecture": architecture, "Config": {}, "RepoDigests": []}
    return SimpleNamespace(platform="linux/amd64", inspect=lambda name: image, run=lambda *args, **options: left.pop(0))


@pytest.mark.parametrize(
    ("answers", "said"),
    [
        ((Finished(1, "", "envlock-too-old:3.6.9\n"), Finished(127, "", "")), "is 3.6.9, and envlock needs 3.8"),
        ((Finished(127, "", "python3: not found"), Finished(127, "", "")), "the:1 has no Python on its PATH"),
        ((Finished(1, "", "Error: boom\n"), Finished(1, "", "x")), "the:1 gave no facts (exit code 1): Error: boom"),
        ((Finished(0, 'envlock-answer:{"facts": 1}\n', ""),), "the:1 gave an answer that is not one"),
    ],
)
def test_a_python_that_cannot_tell(answers: tuple[Finished, ...], said: str) -> None:
    with pytest.raises(FactError) as raised:
        look_inside(answering(*answers), "the:1")
    assert said in raised.value.message


def test_an_image_for_another_machine() -> None:
    with pytest.raises(EngineError) as raised:
        look_inside(answering(architecture="arm64"), "the:1")
    assert raised.value.message == "the:1 is for linux/arm64, and the container engine runs linux/amd64"


@exhaustive
@pytest.mark.engine
def test_an_image_is_captured_and_the_lock_is_built_on_it(bed: Bed, tmp_path: Path) -> None:
    made = Project(bed, tmp_path / "project", document())
    (made.folder / "envlock.lock").unlink()
    name, _, digest = bed.ngc.partition("@")
    done = made("capture", "--image", bed.ngc)
    assert done.returncode == 0, done.stderr
    assert f"capturing inside {bed.ngc}\nwrote envlock.lock: TensorFlow 2.17.0+nv25.2, 5 packages" in done.stderr
    lock = load(made.folder / "envlock.lock")
    assert lock.base_image is not None
    base = lock.base_image
    assert (f"{base.name}:{base.tag}", base.digest, base.route) == (name, digest, "ngc")
    environ = lock.facts.environ or {}
    assert environ["TF_ENABLE_ONEDNN_OPTS"] == "0"  # the image sets it
    built = made("build", "--tag", "test/inside:1")
    assert "test/inside:1 was verified inside: it matches under policy strict\n" in built.stderr
    again = made("capture", "--image", "test/inside:1", "-o", "again.lock")
    assert again.returncode == 0, again.stderr
    assert bed.engine.docker("ps", "-aq", "--filter", "ancestor=test/inside:1").stdout == ""
    assert made("diff", "envlock.lock", "again.lock").stdout == "matches under policy strict\n"
    wrong = made("capture", "--image", "test/inside:1", "--canary")
    assert (wrong.returncode, wrong.stderr.splitlines()[0]) == (
        2,
        "error: `--image` and `--canary` exclude each other",
    )


@exhaustive
@pytest.mark.engine
def test_an_image_of_somebody_else_is_no_image_of_nvidias(bed: Bed, tmp_path: Path) -> None:
    made = Project(bed, tmp_path / "project", document())
    # A Python without any package computes nothing, so nothing would be verified.
    shutil.unpack_archive(demo_wheel(tmp_path / "wheels", "alpha", "1.0"), tmp_path / "python" / "site", "zip")
    text = f"FROM {bed.python}\nCOPY site/ /usr/lib/python3/dist-packages/\n"
    (tmp_path / "python" / "Dockerfile").write_text(text, encoding="ascii")
    image = bed.engine.docker("build", "-q", "--network=none", tmp_path / "python").stdout.strip()
    done = made("capture", "--image", image)
    assert done.returncode == 0, done.stderr
    lock = load(made.folder / "envlock.lock")
    assert lock.base_image is not None
    assert lock.base_image.route == "captured"
    done = made("build", "--base", "captured")
    assert "was verified inside: it matches under policy strict\n" in done.stderr, done.stderr
    labels = bed.engine.docker("image", "inspect", "-f", "{{json .Config.Labels}}", made.image["id"]).stdout
    assert '"io.github.tf-envlock.route":"captured"' in labels
    assert "NVIDIA" not in labels


@pytest.mark.engine
def test_an_image_without_python(bed: Bed, tmp_path: Path) -> None:
    made = Project(bed, tmp_path / "project", document())
    (tmp_path / "Dockerfile").write_text(f"FROM {bed.python}\nUSER 0\nRUN rm -f /usr/bin/python3* /usr/local/bin/*\n")
    bare = bed.engine.docker("build", "-q", "--network=none", tmp_path).stdout.strip()
    done = made("capture", "-o", "x.lock", "--image", bare)
    assert (done.returncode, done.stderr.splitlines()[1]) == (4, f"error: {bare} has no Python on its PATH")
    assert not (made.folder / "x.lock").exists()
