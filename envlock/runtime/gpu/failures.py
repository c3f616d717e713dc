"""One sentence with its fix, and one stable code, for every way in which asking about GPUs can fail.

Sentences name no path, user or host of the machine. Which situation gives which NVML code was measured with NVIDIA's
own libraries 470.256.02, 525.147.05 and 535.261.03; the codes themselves are those of nvml.h.
"""

from __future__ import annotations

import errno

from envlock.runtime.facts import Unavailable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict, Mapping, Optional, Tuple

INIT: Dict[int, Tuple[str, str]] = {
    4: (
        "no-permission",
        "This user may not open the NVIDIA device nodes; give it read and write access to /dev/nvidiactl and "
        "/dev/nvidia0, /dev/nvidia1, ... (often by adding it to the group video), or start the container with the "
        "GPU option of the engine.",
    ),
    9: (
        "driver-not-loaded",
        "The NVIDIA driver library is installed and the kernel module is not loaded; run `nvidia-smi` or "
        "`modprobe nvidia` as root on the machine (not in the container) and look at `dmesg` if that fails.",
    ),
    15: (
        "gpu-lost",
        "A GPU has fallen off the bus; `dmesg` shows an Xid 79, and only a reset of that GPU or a reboot brings it "
        "back.",
    ),
    17: (
        "blocked-by-system",
        "The operating system or a sandbox such as gVisor blocks access to the GPU; allow it there, or run without "
        "the sandbox.",
    ),
    999: (
        "nvml-unknown",
        'NVML gives no reason ("Unknown Error"); look at `dmesg` for lines with NVRM, and restart the container or '
        "the machine.",
    ),
}
"""NVML's code at nvmlInit -> (our code, sentence)."""

DEVICE_CGROUP = (
    "device-cgroup",
    "The device cgroup of this container denies /dev/nvidiactl although its file mode allows it, as after `systemctl "
    "daemon-reload` on the machine; restart the container, and give it the device nodes explicitly so that it does "
    "not happen again.",
)

NO_DEVICE_NODE = (
    "no-device-node",
    "The NVIDIA kernel module is loaded and its device nodes cannot be found here; start the container with the GPU "
    "option of the engine (docker run --gpus all), or run `nvidia-modprobe -u -c=0` once on the machine.",
)

NO_LIBRARY = (
    "no-library",
    "There are signs of an NVIDIA GPU and no libnvidia-ml.so.1 to ask it with; in a container, start it with the GPU "
    "option of the engine (docker run --gpus all), on a machine, install the NVIDIA driver.",
)

PROBE: Dict[str, str] = {
    "no-binding": (
        "NVML cannot be asked because the module pynvml is not installed in this environment; run `pip install "
        "nvidia-ml-py` (not `pynvml`)."
    ),
    "foreign-binding": (
        "The module called pynvml here is not NVIDIA's binding; remove it and run `pip install nvidia-ml-py`."
    ),
    "no-interpreter": (
        "NVML is asked in a separate Python process and this program is embedded or frozen, so there is no Python to "
        "start; run the check from a plain `python`."
    ),
    "probe-garbled": (
        "The process that asks NVML ended well and its answer is not readable; run it again, and report it as a bug "
        "of envlock if it repeats."
    ),
    "probe-not-started": (
        "The process that asks NVML could not be started ({error}); free memory or process ids, or raise the limits "
        "of this user."
    ),
    "probe-timeout": (
        "NVML did not answer within {seconds:g} s and the process that asked it was ended; look at `dmesg` for NVRM "
        "lines, try `nvidia-smi`, and turn persistence mode on if it only is slow to wake up."
    ),
    "probe-stuck": (
        "NVML did not answer within {seconds:g} s and the process that asked it cannot be ended, so it is stuck in "
        "the driver; reboot the machine."
    ),
    "probe-died": (
        "The process that asks NVML was killed by {how}; update the NVIDIA driver and nvidia-ml-py, and look at "
        "`dmesg` for NVRM lines."
    ),
}
"""Status of the child or of the wait for it -> sentence; the status is the code."""

BINDING: Dict[str, str] = {
    "shadowed": (
        "The package folder of the distribution pynvml {version} hides the module of NVIDIA's nvidia-ml-py; run `pip "
        "uninstall pynvml` and `pip install --force-reinstall nvidia-ml-py`."
    ),
    "deprecated": (
        "The deprecated distribution pynvml is installed beside nvidia-ml-py and makes every import of it warn; run "
        "`pip uninstall pynvml`."
    ),
    "abandoned": (
        "The module pynvml comes from nvidia-ml-py3, a port of 2017 that knows no MIG; run `pip uninstall "
        "nvidia-ml-py3` and `pip install nvidia-ml-py`."
    ),
}
"""`problem` of the binding -> sentence; the code is `binding-` and the problem."""

UNDECIDED: Dict[str, str] = {
    "device-order-unknown": (
        "CUDA_VISIBLE_DEVICES picks by number among different GPUs, and which one CUDA takes for the fastest cannot "
        "be known from outside; set CUDA_DEVICE_ORDER=PCI_BUS_ID, or name the GPUs by UUID."
    ),
    "device-name-unknown": (
        "CUDA_VISIBLE_DEVICES names a GPU by UUID that none of the answering GPUs has, and another GPU does not "
        "answer; repair that GPU, or name one that answers."
    ),
    "mig-ordinals": (
        "CUDA_VISIBLE_DEVICES picks by number while a GPU in MIG mode has no MIG device, and whether CUDA counts such "
        "a GPU is not documented; name the devices by UUID."
    ),
    "mig-driver-unknown": (
        "How many MIG devices CUDA shows depends on the driver version, which NVML does not tell; name one MIG device "
        "in CUDA_VISIBLE_DEVICES."
    ),
}
"""Why the visible devices cannot be told -> sentence; the key is the code."""

WORDS: Dict[Any, Tuple[str, str]] = {
    "binding-too-old": (
        "binding-too-old",
        "The installed pynvml has no question for {what}; run `pip install --upgrade nvidia-ml-py`.",
    ),
    "undecodable": (
        "undecodable",
        "NVML's answer for {what} is not text; update the NVIDIA driver, or report the card's firmware to its maker.",
    ),
    "sm-unknown": (
        "sm-unknown",
        "This envlock does not know how many cores a multiprocessor of this architecture has, so {what} cannot be "
        "derived; update envlock.",
    ),
    3: ("nvml-3", "This GPU does not support telling {what}; no setting changes that."),
    4: ("nvml-4", "This user may not read {what}; run as a user who may, or ask the administrator."),
    13: ("nvml-13", "The installed driver is older than the question for {what}; update the NVIDIA driver."),
    14: ("nvml-14", "The infoROM of this GPU is corrupted, so {what} cannot be read; have the card replaced."),
    15: (
        "gpu-lost",
        "This GPU has fallen off the bus, so {what} cannot be read; reset it or reboot the machine.",
    ),
    16: ("nvml-16", "This GPU needs a reset before {what} can be read; run `nvidia-smi --gpu-reset` or reboot."),
    17: (
        "blocked-by-system",
        "The operating system or a sandbox such as gVisor blocks the question for {what}; run without the sandbox.",
    ),
    999: ("nvml-unknown", "NVML gives no reason why {what} cannot be read; look at `dmesg` for lines with NVRM."),
}
"""Code of one unanswered question -> (our code, sentence)."""

OTHER = "NVML answers the question for {what} with its error {code}, which nvml.h explains; update the NVIDIA driver."

WSL_UNKNOWN = (
    "wsl2-unsupported",
    "NVML under WSL2 cannot tell {what}; no setting changes that, so use a Linux machine if the policy needs it.",
)

NO_LIBCUDA = (
    "no-libcuda",
    "The NVIDIA driver is here without libcuda.so.1, so CUDA cannot start; start the container with "
    "NVIDIA_DRIVER_CAPABILITIES=compute,utility, or install the CUDA part of the driver.",
)

DRIVER_NOT_LOADED, LIBRARY_NOT_FOUND, VERSION_MISMATCH, UNKNOWN_ERROR = 9, 12, 18, 999


def of_start(answer: Mapping[str, Any], kernel_version: Optional[str], node_errno: Optional[int]) -> Unavailable:
    """Return why NVML as a whole gave nothing.

    Args:
        answer: what `probe.ask` returned; its status is not `ok`.
        kernel_version: version of the loaded kernel module, from /sys or /proc.
        node_errno: as `hostfs.control_node_errno` gives it.
    """
    status = answer["status"]
    if status != "init-failed":
        return Unavailable(_probe_sentence(status, answer), status)
    code = answer["code"]
    if code == LIBRARY_NOT_FOUND:
        return _no_library(answer.get("detail"))
    if code == VERSION_MISMATCH:
        return _mismatch(answer, kernel_version)
    if node_errno == errno.EPERM and code in (4, UNKNOWN_ERROR):
        return Unavailable(DEVICE_CGROUP[1], DEVICE_CGROUP[0])
    if code == DRIVER_NOT_LOADED and kernel_version is not None:
        return Unavailable(NO_DEVICE_NODE[1], NO_DEVICE_NODE[0])
    if code in INIT:
        return Unavailable(INIT[code][1], INIT[code][0])
    return Unavailable(
        f"NVML cannot be initialised and gives the code {code}, which nvml.h explains; look at `dmesg` for lines with "
        "NVRM, and update nvidia-ml-py if the code is new.",
        f"nvml-{code}",
    )


def _probe_sentence(status: str, answer: Mapping[str, Any]) -> str:
    how = f"signal {answer['signal']}" if "signal" in answer else f"its own exit with code {answer.get('exit')}"
    number = answer.get("errno")
    error = os_words(number) if isinstance(number, int) else "unknown error"
    return PROBE[status].format(seconds=answer.get("seconds", 0), how=how, error=error)


def os_words(number: int) -> str:
    """Return what the C library calls an errno."""
    import os

    return os.strerror(number)


def _no_library(detail: Optional[str]) -> Unavailable:
    if detail is None or "No such file" in detail:
        return Unavailable(NO_LIBRARY[1], NO_LIBRARY[0])
    return Unavailable(
        f"libnvidia-ml.so.1 is found and cannot be loaded ({detail}); install the NVIDIA driver's library for this "
        "architecture again, or take a wrong one out of LD_LIBRARY_PATH.",
        "library-unloadable",
    )


def _mismatch(answer: Mapping[str, Any], kernel_version: Optional[str]) -> Unavailable:
    library = answer.get("library_version")
    if library is None and answer.get("nvml_version"):
        library = answer["nvml_version"].partition(".")[2]  # "12.535.261.03": CUDA's major version, then the driver's
    return Unavailable(
        f"The NVIDIA driver library is version {library or 'unknown'} and the loaded kernel module is version "
        f"{kernel_version or 'unknown'}, as after an update without a reboot; reboot the machine, or restart the "
        "container so that it gets the library of the running module.",
        "driver-library-mismatch",
    )


def of_question(code: Any, what: str, *, wsl2: bool = False) -> Unavailable:
    """Return why one question got no answer; `code` is NVML's number or a word, `what` names the fact for people."""
    if code in UNDECIDED:
        return Unavailable(UNDECIDED[code], code)
    if wsl2 and code == UNKNOWN_ERROR:
        word, sentence = WSL_UNKNOWN
    else:
        word, sentence = WORDS.get(code, (f"nvml-{code}", OTHER.replace("{code}", str(code))))
    return Unavailable(sentence.format(what=what), word)


def of_cuda_version(code: Any, *, wsl2: bool = False) -> Unavailable:
    """Return why there is no CUDA driver version; here NVML's code 12 is about libcuda."""
    if code == LIBRARY_NOT_FOUND:
        return Unavailable(NO_LIBCUDA[1], NO_LIBCUDA[0])
    return of_question(code, "the CUDA driver version", wsl2=wsl2)


def of_binding(problem: str, version: Optional[str]) -> Unavailable:
    """Return the sentence and code of a binding that answers and should be replaced."""
    return Unavailable(BINDING[problem].format(version=version or "of unknown version"), f"binding-{problem}")
