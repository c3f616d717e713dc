"""A sentence with its remedy, and a stable code, for every way in which asking about GPUs can fail.

Sentences contain no path, user or host of the machine. The NVML code of each situation was measured
with NVIDIA's own libraries 470.256.02, 525.147.05 and 535.261.03; the codes themselves are those of
nvml.h.
"""

from __future__ import annotations

import errno
import os

from envlock.runtime.facts import Unavailable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Dict, Optional, Tuple, Union

    from envlock.runtime.gpu.nvml import Answer

INIT: Dict[int, Unavailable] = {
    4: Unavailable(
        "This user may not open the NVIDIA device nodes; give it read and write access to "
        "/dev/nvidiactl and /dev/nvidia0, /dev/nvidia1, ... (often by adding it to the group "
        "video), or start the container with the GPU option of the engine.",
        "no-permission",
    ),
    9: Unavailable(
        "The NVIDIA driver library is installed, but the kernel module is not loaded; run "
        "`nvidia-smi` or `modprobe nvidia` as root on the machine (not in the container) and look "
        "at `dmesg` if that fails.",
        "driver-not-loaded",
    ),
    15: Unavailable(
        "A GPU has fallen off the bus (Xid 79 in `dmesg`); reset it, or reboot the machine.",
        "gpu-lost",
    ),
    17: Unavailable(
        "The operating system or a sandbox such as gVisor blocks access to the GPU; allow it "
        "there, or run without the sandbox.",
        "blocked-by-system",
    ),
    999: Unavailable(
        'NVML gives no reason ("Unknown Error"); search `dmesg` for NVRM, and restart the '
        "container or the machine.",
        "nvml-unknown",
    ),
}
"""NVML's code at nvmlInit -> why nothing is known."""

DEVICE_CGROUP = Unavailable(
    "The device cgroup of this container denies /dev/nvidiactl although its file mode allows it, "
    "as after `systemctl daemon-reload` on the machine; restart the container, and give it the "
    "device nodes explicitly so that it does not happen again.",
    "device-cgroup",
)

NO_DEVICE_NODE = Unavailable(
    "The NVIDIA kernel module is loaded, but its device nodes do not exist here; start the "
    "container with the GPU option of the engine (docker run --gpus all), or run `nvidia-modprobe "
    "-u -c=0` once on the machine.",
    "no-device-node",
)

NO_LIBRARY = Unavailable(
    "There are signs of an NVIDIA GPU, but libnvidia-ml.so.1 is missing; in a container, start it "
    "with the GPU option of the engine (docker run --gpus all), on a machine, install the NVIDIA "
    "driver.",
    "no-library",
)

PROBE: Dict[str, str] = {
    "no-binding": (
        "NVML cannot be queried because the module pynvml is not installed; install nvidia-ml-py "
        "(not `pynvml`) by the command that `envlock doctor` prints."
    ),
    "foreign-binding": (
        "The module pynvml is not NVIDIA's binding; remove it, and install nvidia-ml-py."
    ),
    "no-interpreter": (
        "NVML is queried in a separate Python process, and this program is embedded or frozen; run "
        "the check from a plain `python`."
    ),
    "probe-garbled": (
        "The process that queries NVML gave an unreadable answer; run it again, and report it as a "
        "bug in envlock if it repeats."
    ),
    "probe-not-started": (
        "The process that queries NVML could not be started ({error}); free memory or process IDs, "
        "or raise the limits of this user."
    ),
    "probe-timeout": (
        "NVML did not answer within {seconds:g} s; search `dmesg` for NVRM, try `nvidia-smi`, and "
        "turn on persistence mode if the GPU is slow to wake up."
    ),
    "probe-stuck": (
        "NVML did not answer within {seconds:g} s, and its process is stuck in the driver; reboot "
        "the machine."
    ),
    "probe-died": (
        "The process that queries NVML ended with {how}; update the NVIDIA driver and "
        "nvidia-ml-py, and search `dmesg` for NVRM."
    ),
}
"""Status of the child, or of waiting for it -> sentence; the status is the code."""

BINDING: Dict[str, str] = {
    "shadowed": (
        "The package folder of the distribution pynvml {version} hides the module of NVIDIA's "
        "nvidia-ml-py; remove pynvml by the command that `envlock doctor` prints."
    ),
    "deprecated": (
        "The deprecated distribution pynvml is installed beside nvidia-ml-py, and its import "
        "always warns; remove it by the command that `envlock doctor` prints."
    ),
    "abandoned": (
        "The module pynvml comes from nvidia-ml-py3, a port from 2017 without MIG support; replace "
        "it by the command that `envlock doctor` prints."
    ),
}
"""`problem` of the binding -> sentence; the code is `binding-` and the problem."""

UNDECIDED: Dict[str, str] = {
    "device-order-unknown": (
        "CUDA_VISIBLE_DEVICES selects different GPUs by number, and the one that CUDA takes for "
        "the fastest is unknown; set CUDA_DEVICE_ORDER=PCI_BUS_ID, or name the GPUs by UUID."
    ),
    "device-name-unknown": (
        "CUDA_VISIBLE_DEVICES names a GPU by a UUID that no responding GPU has, and another GPU "
        "does not respond; repair that GPU, or name one that responds."
    ),
    "mig-ordinals": (
        "CUDA_VISIBLE_DEVICES selects GPUs by number while a GPU in MIG mode has no MIG device, "
        "and CUDA does not document whether such a GPU counts; name the devices by UUID."
    ),
    "mig-driver-unknown": (
        "The number of MIG devices that CUDA shows depends on the driver version, which NVML does "
        "not give; name one MIG device in CUDA_VISIBLE_DEVICES."
    ),
}
"""Why the visible devices are unknown -> sentence, by code."""

WORDS: Dict[Union[str, int], Tuple[str, str]] = {
    "binding-too-old": (
        "binding-too-old",
        "The installed pynvml cannot query {what}; install a newer nvidia-ml-py by the command "
        "that `envlock doctor` prints.",
    ),
    "undecodable": (
        "undecodable",
        "NVML's answer for {what} is malformed; update the NVIDIA driver, or report the firmware "
        "of the card to its manufacturer.",
    ),
    "sm-unknown": (
        "sm-unknown",
        "This envlock does not know the number of cores per multiprocessor of this architecture, "
        "so {what} is unknown; update envlock.",
    ),
    3: ("nvml-3", "This GPU does not report {what}; no setting changes that."),
    4: ("nvml-4", "This user may not read {what}; run as another user, or ask the administrator."),
    13: ("nvml-13", "The installed driver is too old to report {what}; update the NVIDIA driver."),
    14: (
        "nvml-14",
        "The infoROM of this GPU is corrupted, so {what} cannot be read; have the card replaced.",
    ),
    15: (
        "gpu-lost",
        "This GPU has fallen off the bus, so {what} cannot be read; reset it or reboot the "
        "machine.",
    ),
    16: (
        "nvml-16",
        "This GPU needs a reset before {what} can be read; run `nvidia-smi --gpu-reset` or reboot.",
    ),
    17: (
        "blocked-by-system",
        "The operating system or a sandbox such as gVisor blocks the query for {what}; run without "
        "the sandbox.",
    ),
    999: ("nvml-unknown", "NVML cannot read {what} and gives no reason; search `dmesg` for NVRM."),
}
"""Code of one value that is missing -> (our code, sentence)."""

OTHER = (
    "NVML answers the query for {what} with error {code} (see nvml.h); update the NVIDIA driver."
)

WSL_UNKNOWN = (
    "wsl2-unsupported",
    "NVML under WSL2 does not report {what}; use a Linux machine if the policy needs it.",
)

NO_LIBCUDA = Unavailable(
    "The NVIDIA driver is installed without libcuda.so.1, so CUDA cannot start; start the "
    "container with NVIDIA_DRIVER_CAPABILITIES=compute,utility, or install the CUDA part of the "
    "driver.",
    "no-libcuda",
)

DRIVER_NOT_LOADED, LIBRARY_NOT_FOUND, VERSION_MISMATCH, UNKNOWN_ERROR = 9, 12, 18, 999


def explain_start_failure(
    answer: Answer, kernel_version: Optional[str], node_errno: Optional[int]
) -> Unavailable:
    """Return why NVML as a whole returned nothing.

    Args:
        answer: what `probe.ask` returned; its status is not `ok`.
        kernel_version: version of the loaded kernel module, from /sys or /proc.
        node_errno: the result of `hostfs.get_control_node_errno`.
    """
    status = answer["status"]
    if status != "init-failed":
        return Unavailable(_describe_probe_failure(status, answer), status)
    code = answer["code"]
    if code == LIBRARY_NOT_FOUND:
        return _explain_missing_library(answer.get("detail"))
    if code == VERSION_MISMATCH:
        return _explain_version_mismatch(answer, kernel_version)
    if node_errno == errno.EPERM and code in (4, UNKNOWN_ERROR):
        return DEVICE_CGROUP
    if code == DRIVER_NOT_LOADED and kernel_version is not None:
        return NO_DEVICE_NODE
    if code in INIT:
        return INIT[code]
    return Unavailable(
        f"NVML cannot be initialized: error {code} (see nvml.h); search `dmesg` for NVRM, and "
        "update nvidia-ml-py if the code is new.",
        f"nvml-{code}",
    )


def _describe_probe_failure(status: str, answer: Answer) -> str:
    if "signal" in answer:
        how = f"signal {answer['signal']}"
    else:
        how = f"exit code {answer.get('exit')}"
    number = answer.get("errno")
    error = os.strerror(number) if isinstance(number, int) else "unknown error"
    return PROBE[status].format(seconds=answer.get("seconds", 0), how=how, error=error)


def _explain_missing_library(detail: Optional[str]) -> Unavailable:
    if detail is None or "No such file" in detail:
        return NO_LIBRARY
    return Unavailable(
        f"libnvidia-ml.so.1 cannot be loaded ({detail}); install the NVIDIA driver's library for "
        "this architecture again, or remove a wrong one from LD_LIBRARY_PATH.",
        "library-unloadable",
    )


def _explain_version_mismatch(answer: Answer, kernel_version: Optional[str]) -> Unavailable:
    library = answer.get("library_version")
    if library is None and answer.get("nvml_version"):
        # "12.535.261.03": CUDA's major version, then the driver's
        library = answer["nvml_version"].partition(".")[2]
    return Unavailable(
        f"The NVIDIA driver library is version {library or 'unknown'} and the loaded kernel module "
        f"is version {kernel_version or 'unknown'}, as after an update without a reboot; reboot "
        "the machine, or restart the container so that it gets the library of the running module.",
        "driver-library-mismatch",
    )


def explain_missing_answer(code: Union[str, int], what: str, *, wsl2: bool = False) -> Unavailable:
    """Return why one value is missing.

    `code` is NVML's number or a word; `what` is the name of the fact in messages.
    """
    if isinstance(code, str) and code in UNDECIDED:
        return Unavailable(UNDECIDED[code], code)
    if wsl2 and code == UNKNOWN_ERROR:
        word, sentence = WSL_UNKNOWN
    elif code in WORDS:
        word, sentence = WORDS[code]
    else:
        word, sentence = f"nvml-{code}", OTHER.replace("{code}", str(code))
    return Unavailable(sentence.format(what=what), word)


def explain_missing_cuda_version(code: Union[str, int], *, wsl2: bool = False) -> Unavailable:
    """Return why there is no CUDA driver version; here NVML's code 12 is about libcuda."""
    if code == LIBRARY_NOT_FOUND:
        return NO_LIBCUDA
    return explain_missing_answer(code, "the CUDA driver version", wsl2=wsl2)


def explain_binding(problem: str, version: Optional[str]) -> Unavailable:
    """Return why a binding that works should be replaced: sentence and code."""
    sentence = BINDING[problem].format(version=version or "of unknown version")
    return Unavailable(sentence, f"binding-{problem}")
