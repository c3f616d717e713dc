"""Versions by their names, as templates of bug reports ask for them and as reports of an environment and
people's own scripts print them: `TensorFlow version: 2.4.1`, `numpy:  1.26.4`, `Python 3.8.5`. Pure.

A sentence that has a version in it is not read: the line has the name, the version, and nothing
else but what these templates put after it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from envlock.lock.pastes.statement import VERSION, Line, Statement, state_package

_PACKAGES = {
    "tensorflow": "tensorflow",
    "tf": "tensorflow",
    "keras": "keras",
    "numpy": "numpy",
    "jax": "jax",
    "jaxlib": "jaxlib",
    "torch": "torch",
    "pytorch": "torch",
}
"""The names that are read, and the package of each."""
_NAMES = "|".join(["python", *_PACKAGES])
_SYSTEMS = ("os platform and distribution", "operating system", "os")
_MARKS = r"[-*#>\s]*"
_LABEL = re.compile(
    rf"{_MARKS}({_NAMES}|(?:nvidia )?driver|{'|'.join(_SYSTEMS)})\b"
    r"(?P<version> version|\.__version__)?(?: *\([^()]*\))? *\**(?P<colon>[:=]?)[\s*]*(?P<value>.*)",
    re.ASCII | re.IGNORECASE,
)
_VALUE = re.compile(
    rf"(?:tf |tensorflow |python )?[('\"]*v?(?:{VERSION}['\",]* ['\"]?)?v?({VERSION})[*)'\"]*(?: (?:gpu|cpu)| +[(|,].*)?",
    re.ASCII | re.IGNORECASE,
)
_BANNER = re.compile(
    r"[0-9]+\.[0-9]+\.[0-9]+\S* +(?:\||\((?:default|main|heads|tags)\b).*", re.ASCII
)
"""What Python prints after its name when it starts."""
_SYSTEM = re.compile(
    r"(?:linux )?(ubuntu|debian)(?: gnu/linux)?(?: ([0-9]{1,2}(?:\.[0-9]{2})?)\b.*)?",
    re.ASCII | re.IGNORECASE,
)
_PLATFORM = re.compile(
    r"['\"]?linux-[\w.+-]+-with-(?:glibc([0-9]+\.[0-9]+)|(ubuntu|debian)-([0-9.]+)-\w+)['\"]?",
    re.ASCII | re.IGNORECASE,
)
"""What `platform.platform()` returns: of the system since Python 3.8 only the C library."""


def read_versions(lines: Sequence[Line]) -> Iterator[Statement]:
    """Yield what lines of a name and a version state; the version can stand below a heading, too."""
    heading = ""
    for number, text in lines:
        if heading and text.strip():
            yield from _state(heading, text.strip(), number)
            heading = ""
        found = _LABEL.fullmatch(text.strip())
        if found is None:
            continue
        name, value = found[1].lower(), found["value"]
        is_label = found["version"] or found["colon"] or name in _SYSTEMS
        if is_label or " " not in value or _BANNER.fullmatch(value):
            yield from _state(name, value, number)
        if not value and text.lstrip().startswith("#"):
            heading = name


def _state(name: str, text: str, line: int) -> Iterator[Statement]:
    """Yield what a version beside a name states."""
    if name in _SYSTEMS:
        platform = _PLATFORM.fullmatch(text)
        if platform is not None and platform[1]:
            yield Statement("system.libc", "glibc", line)
            yield Statement("system.libc_version", platform[1], line)
        elif platform is not None:
            yield Statement("system.os", platform[2].lower(), line)
            yield Statement("system.os_version", platform[3], line)
        system = _SYSTEM.fullmatch(text)
        if system is not None:
            yield Statement("system.os", system[1].lower(), line)
            if system[2] is not None:
                yield Statement("system.os_version", system[2], line)
        return
    value = _VALUE.fullmatch(text)
    if value is None:
        return
    # People leave out the last number.
    is_loose = value[1].count(".") < 2
    if name == "python":
        yield Statement("python.version", value[1], line, is_loose)
    elif name.endswith("driver"):
        yield Statement("gpu.driver_version", value[1], line)
    elif _PACKAGES[name] == "tensorflow":
        # The distribution can be another one, such as tensorflow-cpu.
        yield Statement("tensorflow.version", value[1], line, is_loose)
    else:
        yield from state_package(_PACKAGES[name], value[1], line, is_loose=is_loose)
