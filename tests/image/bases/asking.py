"""Facts to choose for, and every choice as one text: `python -m tests.image.bases.asking` writes the golden file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from envlock.data.image_tables import NgcRelease, WheelBuild, load_image_tables
from envlock.image.bases.candidate import Candidate, explain_candidate
from envlock.image.bases.choose import candidates
from envlock.image.bases.needs import collect_needs
from envlock.image.bases.sources import ngc
from envlock.lock.fact_models import Facts
from envlock.runtime.release import parse_release

GOLDEN = Path(__file__).parent / "golden" / "choices.txt"
TABLES = load_image_tables()
BUILDS = [row for row in TABLES.builds.build if parse_release(row.tensorflow) >= (1, 15)]
PYTHONS = ["3.6.15", "3.7.17", "3.8.20", "3.9.23", "3.10.18", "3.11.13", "3.12.11", "3.13.6", "3.14.7"]
LABELLED = [
    image
    for image in ngc.list_images(TABLES.ngc)
    if image.tensorflow is not None and parse_release(image.release.release) >= (19, 11)
]
"""NVIDIA's images with a TensorFlow of 1.15 or later."""


def choose(asked: Facts, platform: str | None = None) -> list[Candidate]:
    """Return the base images for these facts, the best first."""
    return candidates(collect_needs(asked, platform), TABLES)


def facts(**sections: Any) -> Facts:
    """Return facts of these sections."""
    return Facts.model_validate(sections)


def cpu(tensorflow: str, python: str) -> Facts:
    """Return the facts of a TensorFlow without CUDA."""
    return facts(tensorflow={"version": tensorflow, "cuda_build": False}, python={"version": python}, packages={})


def gpu(build: WheelBuild, python: str) -> Facts:
    """Return the facts of a tested build on the CUDA it was built for: from wheels where it has an extra for them."""
    libraries = {"cudart": {"version": build.cuda}, "cudnn": {"version": build.cudnn}}
    wheels: dict[str, Any] = {
        f"nvidia-{name}-cu{build.cuda.partition('.')[0]}": {} for name in ("cuda-runtime", "cudnn")
    }
    return facts(
        tensorflow={"version": build.tensorflow, "cuda_build": True, "nvidia_build": None},
        python={"version": python},
        cuda=libraries,
        packages=wheels if build.and_cuda else {},
    )


def nvidias(release: NgcRelease, tensorflow: str) -> Facts:
    """Return the facts of a release of NVIDIA's, as its own container would tell them."""
    label = min(release.labels, key=len)
    held = ngc.describe_contents(release, TABLES)
    libraries = {"cudart": held["cuda"].version, "cudnn": held["cudnn"].version, "nccl": held["nccl"].version}
    return facts(
        tensorflow={"version": f"{tensorflow}+{label}", "cuda_build": True, "nvidia_build": label},
        python={"version": held["python"].version},
        cuda={name: {"version": version} for name, version in libraries.items() if version},
        packages={},
    )


def choices() -> str:
    """Return the first choice for every TensorFlow and Python, and for every release of NVIDIA's, with its reason."""
    lines = []
    for build in BUILDS:
        for python in PYTHONS:
            for kind, asked in (("cpu", cpu(build.tensorflow, python)), ("gpu", gpu(build, python))):
                lines.append(f"{build.tensorflow} Python {python} {kind}: {_line(choose(asked)[0], asked)}")
    for release, _, tensorflow in LABELLED:
        asked = nvidias(release, tensorflow or "")
        version = asked.tensorflow.version if asked.tensorflow else None
        lines.append(f"{version} of {release.release}: {_line(choose(asked)[0], asked)}")
    return "\n".join(lines) + "\n"


def reviewed() -> dict[str, tuple[str, str]]:
    """Return the choices of the golden file: for whom which image was chosen, with its route, and why."""
    lines = GOLDEN.read_text(encoding="utf-8").splitlines()
    heads = [line.split(": ", 1) for line in lines[::2]]
    return {who: (image, why.strip()) for (who, image), why in zip(heads, lines[1::2], strict=True)}


def _line(candidate: Candidate, asked: Facts) -> str:
    return f"{candidate.route} {candidate.reference}\n    {explain_candidate(candidate, collect_needs(asked))}"


if __name__ == "__main__":
    GOLDEN.write_text(choices(), encoding="utf-8")
