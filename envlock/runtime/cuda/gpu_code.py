"""Does a TensorFlow build hold code that a GPU can run, and can the driver compile what it holds?

Rules (CUDA C++ Programming Guide, "Application Compatibility" and "Binary Compatibility"; nvcc manual, "GPU
Architecture Features"): machine code (SASS) for X.y runs on X.z with z >= y; PTX for X.y is compiled by the driver for
any later capability; code with the suffix `a` runs on that capability only, with `f` on that major version from that
minor version on. A driver compiles PTX only of toolkits up to its own CUDA version (CUDA Compatibility, "Minor
Version Compatibility": PTX of a newer toolkit fails with CUDA_ERROR_UNSUPPORTED_PTX_VERSION, 222).

In TensorFlow's list `sm_xy` is machine code only, `compute_xy` and `x.y` are machine code and PTX (configure.py).
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Iterable, List, Optional, Tuple

    Capability = Tuple[int, int]

NATIVE, PTX, NONE, UNKNOWN = "native", "ptx", "none", "unknown"


class Target:
    """One entry of TensorFlow's list of compute capabilities."""

    __slots__ = ("capability", "has_ptx", "suffix", "text")

    def __init__(self, text: str) -> None:
        """Read `sm_80`, `sm_90a`, `compute_90` or `8.0`.

        Raises:
            ValueError: it is something else.
        """
        self.text = text
        kind, _, number = text.rpartition("_")
        self.suffix = number[-1:] if number[-1:] in ("a", "f") else ""
        number = number[: len(number) - len(self.suffix)].replace(".", "")
        if kind not in ("sm", "compute", "") or not number.isdigit() or len(number) < 2:
            raise ValueError(f"not a compute capability: {text!r}")
        self.capability = int(number[:-1]), int(number[-1])
        self.has_ptx = kind != "sm"

    def runs_on(self, gpu: Capability) -> bool:
        """Return whether the machine code runs."""
        if self.suffix == "a":
            return gpu == self.capability
        return gpu[0] == self.capability[0] and gpu[1] >= self.capability[1]

    def compiles_for(self, gpu: Capability) -> bool:
        """Return whether the PTX, if any, can be compiled for that GPU."""
        if not self.has_ptx or self.suffix == "a":
            return self.has_ptx and gpu == self.capability
        return gpu >= self.capability and (self.suffix != "f" or gpu[0] == self.capability[0])


class Verdict:
    """The answer.

    Attributes:
        kind: `native` (machine code), `ptx` (compiled by the driver at first use), `none`, or `unknown`.
        runs: whether it will run; None where that depends on the driver and its CUDA version is not known.
        target: the entry that serves, such as `sm_80`, or None.
        sentence: the answer for people.
    """

    __slots__ = ("kind", "runs", "sentence", "target")

    def __init__(
        self, kind: str, runs: Optional[bool], target: Optional[str], sentence: str
    ) -> None:
        self.kind = kind
        self.runs = runs
        self.target = target
        self.sentence = sentence


def judge(
    targets: Iterable[str],
    capability: str,
    toolkit: Optional[str] = None,
    driver_cuda: Optional[str] = None,
) -> Verdict:
    """Return whether a build runs on a GPU.

    Args:
        targets: `cuda_compute_capabilities` of the build info.
        capability: the GPU's compute capability, such as `9.0`.
        toolkit: CUDA version that the PTX needs: `GpuCode.ptx_cuda` of the doctor where it was read (12.3 for
            TensorFlow 2.18 to 2.21), else `cuda_version` of the build info, which asks for more than is needed.
        driver_cuda: CUDA version of the driver's API, such as `12.4`.
    """
    gpu = _version(capability)
    known = _targets(targets)
    if gpu is None or not known:
        return Verdict(
            UNKNOWN,
            None,
            None,
            "The GPU code in this TensorFlow, or the code that the GPU needs, is unknown.",
        )
    native = [target for target in known if target.runs_on(gpu)]
    if native:
        best = max(native, key=lambda target: target.capability)
        return Verdict(
            NATIVE,
            True,
            best.text,
            f"TensorFlow holds machine code for this GPU ({best.text} on {capability}).",
        )
    ptx = [target for target in known if target.compiles_for(gpu)]
    if not ptx:
        held = ", ".join(target.text for target in known)
        return Verdict(
            NONE,
            False,
            None,
            f"TensorFlow holds no code for compute capability {capability}, only {held}.",
        )
    return _jit(
        max(ptx, key=lambda target: target.capability).text, capability, toolkit, driver_cuda
    )


def _jit(
    target: str, capability: str, toolkit: Optional[str], driver_cuda: Optional[str]
) -> Verdict:
    begin = f"TensorFlow holds only PTX ({target}) for compute capability {capability}: the driver compiles it at first use"
    needed, has = _version(toolkit), _version(driver_cuda)
    if needed is None or has is None:
        return Verdict(
            PTX, None, target, f"{begin}, if its CUDA version is at least that of the PTX."
        )
    if has >= needed:
        return Verdict(
            PTX,
            True,
            target,
            f"{begin}, and a driver for CUDA {driver_cuda} can (needed: {toolkit}).",
        )
    return Verdict(
        PTX,
        False,
        target,
        f"{begin}, but a driver for CUDA {driver_cuda} cannot read PTX of CUDA {toolkit} (error 222).",
    )


def _targets(texts: Iterable[str]) -> List[Target]:
    found = [_target(text) for text in texts]
    return [target for target in found if target is not None]


def _target(text: str) -> Optional[Target]:
    try:
        return Target(text)
    except ValueError:  # a notation of a later TensorFlow says nothing to us
        return None


def _version(text: Optional[str]) -> Optional[Capability]:
    """Return (major, minor) of `12.5.1`, None when it is not one."""
    parts = (text or "").split(".")
    if len(parts) < 2 or not all(part.isdigit() for part in parts[:2]):
        return None
    return int(parts[0]), int(parts[1])
