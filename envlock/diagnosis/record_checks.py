"""Rules on what the RECORDs and the metadata folders of the packages say of one another. Pure."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from pathlib import Path

from envlock.diagnosis.diagnosed_environment import Environment, SharedFiles
from envlock.diagnosis.doctor_table import make_finding
from envlock.diagnosis.package_checks import check_cuda_majors
from envlock.diagnosis.remedies import Remedy, install_again
from envlock.diagnosis.requirements import list_requirers
from envlock.runtime.collectors.tensorflow import DISTRIBUTIONS
from envlock.runtime.release import minor
from envlock.runtime.report import ERROR, WARNING, Finding, count

BINDINGS = {"nvidia-ml-py", "nvidia-ml-py3", "pynvml"}
"""Those that `nvml-binding` is about."""
BOTH_REQUIRED = (
    "Others require each of them, so none can go: ask their publishers to rename the file, or use "
    "other versions."
)


def check_shared_files(environment: Environment) -> Iterator[Finding]:
    """Yield distributions that have overwritten files of each other, unless another rule has them."""
    for shared in environment.shared_files:
        if _is_of_another_rule(environment, shared):
            continue
        has_library = any(".so" in Path(path).name for path in shared.paths)
        kept = min(shared.names, key=lambda name: _compute_cost(environment, name, shared.names))
        is_required = _compute_cost(environment, kept, shared.names)[0] > 0
        if is_required and not has_library:
            fix = Remedy(BOTH_REQUIRED)
        else:
            fix = install_again(environment, kept, without=shared.names)
        example = min(shared.paths, key=lambda path: (".so" not in path, path))
        others = (
            f" and {count(len(shared.paths) - 1, 'more file')}" if len(shared.paths) > 1 else ""
        )
        yield make_finding(
            "shared-files",
            fix,
            severity=ERROR if has_library else WARNING,
            kept=kept,
            names=" and ".join(shared.names),
            files=f"{example}{others}",
        )


def _is_of_another_rule(environment: Environment, shared: SharedFiles) -> bool:
    names = set(shared.names)
    if names <= set(DISTRIBUTIONS) or names <= BINDINGS:
        return True
    reported = [set(finding.message.split()) for finding in check_cuda_majors(environment)]
    return any(names <= words for words in reported)


def _compute_cost(
    environment: Environment, name: str, names: Sequence[str]
) -> tuple[int, bool, str]:
    """Return the cost of keeping one of several distributions: others that require one of the
    removed, and for NVIDIA's wheels another CUDA than TensorFlow's.
    """
    owners: set[str] = set()
    for other in names:
        if other != name:
            owners.update(list_requirers(environment, other, without=names))
    cuda = environment.get("tensorflow.built_with_cuda")
    is_other_cuda = isinstance(cuda, str) and not name.endswith(f"-cu{minor(cuda).split('.')[0]}")
    return len(owners), is_other_cuda, name


def check_remnants(environment: Environment) -> Iterator[Finding]:
    """Yield metadata folders, files and links that describe no distribution."""
    for each in environment.remnants:
        path = Path(each)
        command = shlex.join(["rm", "-r", each])
        remedy = Remedy(command, [command])
        yield make_finding("remnant", remedy, name=path.name, folder=path.parent.name)
