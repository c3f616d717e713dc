"""Versions by their names, as templates of bug reports ask for them and as reports of an environment and
people's own scripts print them: `TensorFlow version: 2.4.1`, `numpy:  1.26.4`, `Python 3.8.5`. Pure.

A sentence that has a version in it is not read: the line has the name, the version, and nothing
else but what these templates put after it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from envlock.lock.pastes.statement import VERSION, Line, Statement, state_package

_ALIASES = {"tf": "tensorflow", "pytorch": "torch", "sklearn": "scikit-learn"}
"""What people call a package that has another name."""
_PACKAGES = (
    "accelerate",
    "datasets",
    "diffusers",
    "flax",
    "h5py",
    "huggingface_hub",
    "jax",
    "jaxlib",
    "keras",
    "numpy",
    "pandas",
    "protobuf",
    "safetensors",
    "scikit-learn",
    "scipy",
    "tensorboard",
    "tensorflow",
    "tensorflow-probability",
    "tf-keras",
    "tf_keras",
    "tokenizers",
    "torch",
    "torchvision",
    "transformers",
)
"""The packages whose versions are read; TensorFlow's forms and reports of other tools name them."""
_SYSTEMS = ("os platform and distribution", "operating system", "python platform", "platform", "os")
_CARDS = ("gpu model and memory", "gpu model", "gpu")
_NAMES = (
    *_SYSTEMS,
    "python",
    "kernel",
    "(?:nvidia )?driver",
    "cuda/cudnn",
    "cudnn",
    "cuda",
    *_CARDS,
    *sorted((*_PACKAGES, *_ALIASES), key=len, reverse=True),
)
_MARKS = r"[-*#>\s]*"
_LABEL = re.compile(
    rf"{_MARKS}`?({'|'.join(_NAMES)})\b`?"
    r"(?P<version> version|\.__version__)?(?: *\([^()]*\))? *\**(?P<colon>[:#]|={0,2})[\s*]*(?P<value>.*)",
    re.ASCII | re.IGNORECASE,
)
_VALUE = re.compile(
    rf"(?:(?:tf|tensorflow)(?:-gpu|-cpu)? |python )?[('\"]*v?(?:{VERSION}['\",]* ['\"]?)?"
    rf"v?({VERSION})[*)'\"]*(?: (?:gpu|cpu)| +[(\[|,].*)?",
    re.ASCII | re.IGNORECASE,
)
_SEVERAL = re.compile(r"v?[0-9][0-9.]* ?(?:/|,|or|and) ?v?[0-9]", re.ASCII | re.IGNORECASE)
_COMMIT = re.compile(r".*-g[0-9a-f]{7,}", re.ASCII)
"""The end of what `git describe` prints: a commit after the version, or that of the version."""
_PYTHON = re.compile(r"[23]\.[0-9]{1,2}(?:\.[0-9]{1,2})?(?:(?:a|b|rc)[0-9]+)?\+?", re.ASCII)
"""Not `3.7.6.final.0`, as conda prints the version of its own Python."""
_BANNER = re.compile(
    r"[0-9]+\.[0-9]+\.[0-9]+\S* +(?:\||\((?:default|main|heads|tags)\b).*", re.ASCII
)
"""What Python prints after its name when it starts."""
_SYSTEM = re.compile(
    r"(?:(?:linux|wsl2?) +)?(ubuntu|debian)(?: gnu/linux)?(?: +([0-9]{1,2}(?:\.[0-9]{2})?)\b(?P<rest>.*))?",
    re.ASCII | re.IGNORECASE,
)
_LTS = re.compile(r"(?:\.[0-9]{1,2})?(?: lts)?", re.ASCII | re.IGNORECASE)
"""What follows the version of a system in a line that has no label."""
_PLATFORM = re.compile(
    r"['\"]?linux-([\w.+-]+)-(x86_64|aarch64)-with-"
    r"(?:glibc([0-9]+\.[0-9]+)|(ubuntu|debian)-([0-9.]+)-\w+)['\"]?",
    re.ASCII | re.IGNORECASE,
)
"""What `platform.platform()` returns: of the system since Python 3.8 only the C library."""
_KERNEL = re.compile(r"[0-9]+\.[0-9]+\.[0-9]+\S{0,60}", re.ASCII)
_TOOLKIT = r"(?:cuda(?: toolkit)?)?(?: version)?:? *v?([0-9]{1,2}\.[0-9]{1,2})(?:\.[0-9]+){0,2}"
_CUDNN = r"(?:cudnn)?(?: version)?:? *v?([0-9]{1,2}(?:\.[0-9]{1,3}){0,3})(?:\.x)?"
_BOTH = re.compile(rf"{_TOOLKIT}(?: *[/,;&] *| and | +){_CUDNN}", re.IGNORECASE)
_BOTH_NAMED = re.compile(rf"{_MARKS}(?=cuda.*cudnn){_BOTH.pattern}", re.IGNORECASE)
_ONE = {"cuda": re.compile(_TOOLKIT), "cudnn": re.compile(_CUDNN)}
_CARD = re.compile(
    r"(?:nvidia )?(?:\b(geforce|tesla|quadro) )?"
    r"(?:\b(rtx|gtx) ?([0-9]{3,4})(mx|m)?\b(?: (ti|super)\b)?|\b([abhklptv][0-9]{1,4})\b)",
    re.ASCII | re.IGNORECASE,
)
_GEFORCE = re.compile(r"gtx[0-9]+|rtx[2-5]0[5-9]0", re.ASCII)
"""The numbers that only cards called GeForce have: a Quadro is an RTX 4000."""
_TESLA = ("k80", "p4", "p40", "p100", "t4", "v100")
_PLAIN = ("a10", "a30", "a40", "a100", "b200", "h100", "h200", "l4", "l40")
"""Cards of data centers whose names begin with `Tesla`, and with nothing."""


def read_versions(lines: Sequence[Line]) -> Iterator[Statement]:
    """Yield what lines of a name and a version state; the version can stand below a heading, too.

    A version of CUDA counts only in a text that has one of cuDNN as well: alone, it is as often the one
    that nvidia-smi prints, which is that of the driver. Nor does a version count where another line has
    several (`TensorFlow: 2.2 / 2.3`).
    """
    found = list(_read(lines))
    left_out = {each.path for each in found if each.value is None}
    if "cuda.cudnn.version" not in {each.path for each in found}:
        left_out.add("cuda.cudart.version")
    for statement in found:
        if statement.path not in left_out:
            yield statement


def _read(lines: Sequence[Line]) -> Iterator[Statement]:
    heading = ""
    for number, text in lines:
        if heading and text.strip():
            yield from _state(heading, text.strip(), number)
            heading = ""
        yield from _state_unlabelled(text.strip(), number)
        found = _LABEL.fullmatch(text.strip())
        if found is None:
            continue
        name, value = found[1].lower(), found["value"]
        is_label = found["version"] or found["colon"] or name in _SYSTEMS
        if is_label or " " not in value or _BANNER.fullmatch(value):
            yield from _state(name, value, number)
        # The second is an expression in a session of Python, which prints its value below.
        if not value and (text.lstrip().startswith("#") or found["version"] == ".__version__"):
            heading = name


def _state_unlabelled(text: str, line: int) -> Iterator[Statement]:
    """Yield what a line without a label states: a system, or CUDA with cuDNN."""
    system = _SYSTEM.fullmatch(text.lstrip("-* "))
    if system is not None and system[2] is not None and _LTS.fullmatch(system["rest"]):
        yield from _state_system(text.lstrip("-* "), line)
    both = _BOTH_NAMED.fullmatch(text)
    if both is not None:
        yield from _state_cuda(both, line)


def _state(name: str, text: str, line: int) -> Iterator[Statement]:
    """Yield what a text beside a name states."""
    one = _ONE[name].fullmatch(text) if name in _ONE else None
    if name in _SYSTEMS:
        yield from _state_system(text, line)
    elif name in _CARDS:
        yield from _state_card(text, line)
    elif name == "kernel":
        if _KERNEL.fullmatch(text):
            yield Statement("system.kernel_release", text, line)
    elif name == "cuda/cudnn":
        both = _BOTH.fullmatch(text)
        if both is not None:
            yield from _state_cuda(both, line)
    elif one is not None:
        path = {"cuda": "cuda.cudart.version", "cudnn": "cuda.cudnn.version"}[name]
        yield Statement(path, one[1], line, is_loose=True)
    elif name not in _ONE:
        yield from _state_version(name, text, line)


def _state_version(name: str, text: str, line: int) -> Iterator[Statement]:
    """Yield what the version of Python, of the driver or of a package states."""
    package = _ALIASES.get(name, name)
    if package == "tensorflow" and _SEVERAL.match(text):
        yield Statement("tensorflow.version", None, line)
    value = _VALUE.fullmatch(text)
    if value is None or _COMMIT.fullmatch(value[1]):
        return
    # People leave out the last number.
    is_loose = value[1].count(".") < 2
    if name == "python":
        if _PYTHON.fullmatch(value[1]):
            yield Statement("python.version", value[1], line, is_loose)
    elif name.endswith("driver"):
        yield Statement("gpu.driver_version", value[1], line, is_loose)
    elif package == "tensorflow":
        # The distribution can be another one, such as tensorflow-cpu.
        yield Statement("tensorflow.version", value[1], line, is_loose)
    else:
        yield from state_package(package, value[1], line, is_loose=is_loose)


def _state_system(text: str, line: int) -> Iterator[Statement]:
    """Yield what the name of a system states."""
    platform = _PLATFORM.fullmatch(text)
    if platform is not None:
        yield Statement("system.kernel_release", platform[1], line)
        yield Statement("system.machine", platform[2], line)
        if platform[3]:
            yield Statement("system.libc", "glibc", line)
            yield Statement("system.libc_version", platform[3], line)
        else:
            yield Statement("system.os", platform[4].lower(), line)
            yield Statement("system.os_version", platform[5], line)
    system = _SYSTEM.fullmatch(text)
    if system is not None:
        yield Statement("system.os", system[1].lower(), line)
        if system[2] is not None:
            yield Statement("system.os_version", system[2], line)


def _state_cuda(found: re.Match[str], line: int) -> Iterator[Statement]:
    """Yield what the versions of CUDA and cuDNN state."""
    yield Statement("cuda.cudart.version", found[1], line, is_loose=True)
    yield Statement("cuda.cudnn.version", found[2], line, is_loose=True)


def _state_card(text: str, line: int) -> Iterator[Statement]:
    """Yield what a text that names one GPU states: the beginning of its name. Its memory is left out,
    because people write that of the catalogue.
    """
    names = {_name_card(found) for found in _CARD.finditer(text)}
    if len(names) == 1:
        name = names.pop()
        if name is not None:
            yield Statement("gpu.devices.0.name", name, line, is_loose=True)


def _name_card(found: re.Match[str]) -> str | None:
    """Return the name of a GPU as its driver writes it; None if it can be one of several."""
    family, series, number, mobile, kind, data = (each and each.lower() for each in found.groups())
    if data is not None:
        if data in _PLAIN:
            return data.upper()
        return f"Tesla {data.upper()}" if data in _TESLA else None
    if family is None and _GEFORCE.fullmatch(f"{series}{number}"):
        family = "geforce"
    if family is None:
        return None
    words = [
        {"geforce": "GeForce"}.get(family, family.title()),
        f"{series.upper()}",
        f"{number}{(mobile or '').upper()}",
        {"ti": "Ti", "super": "SUPER"}.get(kind or "", ""),
    ]
    return " ".join(filter(None, words))
