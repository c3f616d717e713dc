"""Whether a TensorFlow build contains code that a GPU can run, or that the driver can compile for
it.

Rules (CUDA C++ Programming Guide, "Application Compatibility" and "Binary Compatibility"; nvcc
manual, "GPU Architecture Features"): machine code (SASS) for X.y runs on X.z with z >= y; PTX for
X.y is compiled by the driver for any later capability; code with the suffix `a` runs on that
capability only, with `f` on that major version from that minor version on. A driver compiles PTX
only of toolkits up to its own CUDA version (CUDA Compatibility, "Minor Version Compatibility": PTX
of a newer toolkit fails with CUDA_ERROR_UNSUPPORTED_PTX_VERSION, 222).

In TensorFlow's list `sm_xy` is machine code only, `compute_xy` and `x.y` are machine code and PTX
(configure.py).
"""

from __future__ import annotations

from envlock.runtime.digits import parse_digits

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
            ValueError: the text has another form.
        """
        self.text = text
        kind, _, number = text.rpartition("_")
        self.suffix = ""
        if number[-1:] in ("a", "f"):
            self.suffix = number[-1:]
            number = number[:-1]
        # Without its dot, the last digit is the minor number: 120 is 12.0.
        number = number.replace(".", "")
        if kind not in ("sm", "compute", "") or not number.isdigit() or len(number) < 2:
            raise ValueError(f"not a compute capability: {text!r}")
        self.capability = int(number[:-1]), int(number[-1])
        self.has_ptx = kind != "sm"

    def can_run_on(self, gpu: Capability) -> bool:
        """Return whether the machine code runs on that GPU."""
        if self.suffix == "a":
            return gpu == self.capability
        return gpu[0] == self.capability[0] and gpu[1] >= self.capability[1]

    def can_compile_for(self, gpu: Capability) -> bool:
        """Return whether the PTX, if any, can be compiled for that GPU."""
        if not self.has_ptx:
            return False
        if self.suffix == "a":
            return gpu == self.capability
        if self.suffix == "f" and gpu[0] != self.capability[0]:
            return False
        return gpu >= self.capability


class Verdict:
    """Whether a build runs on a GPU.

    Attributes:
        kind: `native` (machine code), `ptx` (compiled by the driver at first use), `none`, or
            `unknown`.
        runs: whether it will run; None if that depends on the driver and its CUDA version is not
            known.
        target: the entry that the GPU uses, such as `sm_80`, or None.
        sentence: the verdict as a sentence.
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
        toolkit: CUDA version that the PTX needs: `GpuCode.ptx_cuda` of the doctor if it was read
            (12.3 for TensorFlow 2.18 to 2.21), else `cuda_version` of the build info, which is
            higher than necessary.
        driver_cuda: CUDA version of the driver's API, such as `12.4`.
    """
    gpu = _parse_version(capability)
    parsed = _parse_targets(targets)
    if gpu is None or not parsed:
        sentence = "The GPU code in this TensorFlow, or the code that the GPU needs, is unknown."
        return Verdict(UNKNOWN, None, None, sentence)
    native = [target for target in parsed if target.can_run_on(gpu)]
    if native:
        best = max(native, key=_get_capability)
        sentence = f"TensorFlow holds machine code for this GPU ({best.text} on {capability})."
        return Verdict(NATIVE, True, best.text, sentence)
    ptx = [target for target in parsed if target.can_compile_for(gpu)]
    if not ptx:
        names = ", ".join([target.text for target in parsed])
        sentence = f"TensorFlow holds no code for compute capability {capability}, only {names}."
        return Verdict(NONE, False, None, sentence)
    return _judge_ptx(max(ptx, key=_get_capability).text, capability, toolkit, driver_cuda)


def _get_capability(target: Target) -> Capability:
    return target.capability


def _judge_ptx(
    target: str, capability: str, toolkit: Optional[str], driver_cuda: Optional[str]
) -> Verdict:
    start = (
        f"TensorFlow holds only PTX ({target}) for compute capability {capability}: "
        "the driver compiles it at first use"
    )
    needed = _parse_version(toolkit)
    available = _parse_version(driver_cuda)
    if needed is None or available is None:
        sentence = f"{start}, if its CUDA version is at least that of the PTX."
        return Verdict(PTX, None, target, sentence)
    if available >= needed:
        sentence = f"{start}, and a driver for CUDA {driver_cuda} can (needed: {toolkit})."
        return Verdict(PTX, True, target, sentence)
    sentence = (
        f"{start}, but a driver for CUDA {driver_cuda} cannot read PTX of CUDA {toolkit} "
        "(error 222)."
    )
    return Verdict(PTX, False, target, sentence)


def _parse_targets(texts: Iterable[str]) -> List[Target]:
    targets = [_parse_target(text) for text in texts]
    return [target for target in targets if target is not None]


def _parse_target(text: str) -> Optional[Target]:
    try:
        return Target(text)
    except ValueError:  # the notation of a later TensorFlow, which is not known yet
        return None


def _parse_version(text: Optional[str]) -> Optional[Capability]:
    """Return (major, minor) of `12.5.1`; None if the text is not a version."""
    numbers = [parse_digits(part) for part in (text or "").split(".")]
    if len(numbers) < 2 or numbers[0] is None or numbers[1] is None:
        return None
    return numbers[0], numbers[1]
