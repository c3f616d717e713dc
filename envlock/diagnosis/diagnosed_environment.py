"""The environment that the rules examine: facts, variables, and questions about them. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from envlock.data import determinism
from envlock.data.specifiers import matches_specifier, matches_version, parse_version


@dataclass(frozen=True)
class Requirement:
    """A requirement of an installed distribution.

    Attributes:
        by, version: the distribution, and its version.
        name: the distribution that it requires.
        takes: the PEP 440 specifier of the versions that it accepts; empty for every version.
        extras: the extras of that distribution that it requires.
        url: the URL that it must come from; empty for an index.
        extra: the extra that has this requirement; empty if it always applies.
    """

    by: str
    version: str
    name: str
    takes: str = ""
    extras: tuple[str, ...] = ()
    url: str = ""
    extra: str = ""


@dataclass(frozen=True)
class SharedFiles:
    """Files that several distributions have installed, with different contents.

    Attributes:
        names: the distributions.
        paths: the files, relative to `site-packages`.
    """

    names: tuple[str, ...]
    paths: tuple[str, ...]


@dataclass(frozen=True)
class GpuHealth:
    """The memory errors that one GPU has counted; None for what it does not count.

    Attributes:
        index: as `nvidia-smi` counts.
        name: of the model.
        uncorrected: uncorrectable errors since the driver was loaded.
        retired_pages: pages of memory taken out of use for such an error, on GPUs before Ampere.
        remapped_rows: rows replaced for one, from Ampere on.
        pending: a page or a row is replaced when the GPU is reset next.
        remapping_failed: a row had no replacement.
    """

    index: int
    name: str | None = None
    uncorrected: int | None = None
    retired_pages: int | None = None
    remapped_rows: int | None = None
    pending: bool = False
    remapping_failed: bool = False


@dataclass(frozen=True)
class Environment:
    """An environment, live or from a lockfile.

    Attributes:
        facts: the tree that the collectors return.
        unavailable: dotted path -> {reason, code} of the facts that are unknown.
        variables: variables of the tables whose state is known: their value, or None for unset.
        others: names of all other variables that are set; None if unknown (for a lockfile).
        strange_flags: flags in XLA_FLAGS and TF_XLA_FLAGS that the installed TensorFlow does not
            contain.
        missing_flag_file: whether XLA_FLAGS names a file that does not exist.
        ptx_cuda: the CUDA version that a driver needs for the PTX in TensorFlow's library, if that
            was read.
        requirements: those of the installed distributions, with the markers of their interpreter;
            empty for a lockfile.
        shared_files: those that distributions have overwritten for each other; empty for a lockfile.
        remnants: paths of the metadata folders that describe no distribution; empty for a lockfile.
        gpu_health: of each GPU of the live machine; empty for a lockfile.
        locked_backend: the back end of Keras in a lockfile of this environment; None without one.
        installer: the installer of this environment: a name in installers.toml.
        python: the interpreter, as typed in a shell.
    """

    facts: Mapping[str, Any]
    unavailable: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    variables: Mapping[str, str | None] = field(default_factory=dict)
    others: Sequence[str] | None = None
    strange_flags: Sequence[str] = ()
    missing_flag_file: bool = False
    ptx_cuda: str | None = None
    requirements: Sequence[Requirement] = ()
    shared_files: Sequence[SharedFiles] = ()
    remnants: Sequence[str] = ()
    gpu_health: Sequence[GpuHealth] = ()
    locked_backend: str | None = None
    installer: str = "pip"
    python: str = "python"

    def get(self, path: str) -> Any:
        """Return the fact at a dotted path; None if it is null, absent or unknown."""
        node: Any = self.facts
        for name in path.split("."):
            if not isinstance(node, Mapping):
                return None
            node = node.get(name)
        return node

    @property
    def tensorflow(self) -> str | None:
        """The TensorFlow version; None without TensorFlow, or if its version cannot be compared."""
        return _parse_version(self.get("tensorflow.version"))

    @property
    def stock(self) -> bool:
        """Whether TensorFlow is a build from the package index, not NVIDIA's."""
        return self.tensorflow is not None and self.get("tensorflow.nvidia_build") is None

    @property
    def keras(self) -> str | None:
        """The version of Keras (3, or 2 with a TensorFlow that uses it)."""
        return _parse_version(self.get("keras.version"))

    @property
    def gpus(self) -> Mapping[str, Mapping[str, Any]]:
        """The visible GPUs by CUDA's index."""
        devices = self.get("gpu.devices")
        return devices if isinstance(devices, Mapping) else {}

    @property
    def packages(self) -> Mapping[str, Any]:
        """The facts of the installed distributions by name."""
        return self.get("packages") or {}

    def get_version(self, name: str) -> str | None:
        """Return the version of an installed distribution; None if it cannot be compared."""
        package = self.packages.get(name)
        if not isinstance(package, Mapping):
            return None
        return _parse_version(package.get("version"))

    def is_installed(self, name: str) -> bool:
        """Return whether a distribution is installed, in any version."""
        return name in self.packages

    def has_tensorflow(self, specifiers: Sequence[str]) -> bool:
        """Return whether the installed TensorFlow matches one of these; `*` is true without
        TensorFlow, too.
        """
        if "*" in specifiers:
            return True
        return self.tensorflow is not None and matches_version(specifiers, self.tensorflow)

    def has_keras(self, specifier: str | None) -> bool:
        """Return whether the installed Keras matches this; without a specifier, True."""
        if specifier is None:
            return True
        return self.keras is not None and matches_specifier(self.keras, specifier)

    def is_true(self, condition: str | None) -> bool:
        """Return whether `gpu`, `several-gpus`, `nvlink-sharp` or `horovod` is true here."""
        if condition is None:
            return True
        if condition == "horovod":
            return self.is_installed("horovod")
        if condition == "several-gpus":
            return len(self.gpus) >= 2
        if condition == "nvlink-sharp":
            return len(self.gpus) >= 2 and any(map(has_nvlink_sharp, self.gpus.values()))
        return len(self.gpus) >= 1

    def is_build(self, kind: str | None) -> bool:
        """Return whether TensorFlow is that kind of build: `stock` or `nvidia`."""
        if kind is None:
            return True
        return self.tensorflow is not None and self.stock == (kind == "stock")

    def is_read(self, row: determinism.VariableRules) -> bool:
        """Return whether something here reads a variable; a TensorFlow of unknown version may."""
        if row.read_by == "nobody":
            return False
        if self.tensorflow is None or not self.stock:
            return True
        return self.has_tensorflow(row.tensorflow)


def has_nvlink_sharp(gpu: Mapping[str, Any]) -> bool:
    """Return whether a GPU can reduce in NVLink's switches, where its machine has them.

    Source: https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/env.html#nccl-nvls-enable:
    third-generation NVSwitch systems with Hopper and later. The compute capabilities of their
    data-centre GPUs are 9.x and 10.x; those of Blackwell's other cards, 12.x, have no NVLink.
    """
    capability = gpu.get("compute_capability")
    # An unknown one may be any.
    return not isinstance(capability, str) or capability.partition(".")[0] in ("9", "10")


def _parse_version(text: object) -> str | None:
    version = parse_version(text)
    return None if version is None else str(version)
