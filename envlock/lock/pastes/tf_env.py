"""The report of TensorFlow's tools/tf_env_collect.sh, since 2017. Pure.

Not read: the distribution that Python's platform module names, which is often that of its builder, and
the CUDA libraries on the disk, of which any can be loaded.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from envlock.lock.pastes.pip_lists import read_rows
from envlock.lock.pastes.statement import VERSION, Line, Statement

_HEAD = re.compile(r"== ?([a-z][\w /+:.-]{1,60}?) ?=+", re.ASCII)
_PACKAGES = ("check pips", "tensorflow package conflicts")
_UNSET = re.compile(r"([A-Z][A-Z0-9_]{1,60}) is unset", re.ASCII)
_LINES = (
    ("check python", "python.version", rf"python version: ({VERSION})"),
    (
        "check os platform",
        "system.libc_version",
        r"os platform: Linux-\S{1,100}-with-glibc([0-9.]+)",
    ),
    ("check os platform", "system.kernel", r"os: (\w{1,20})"),
    ("check os platform", "system.kernel_release", r"os release version: (\S{1,100})"),
    ("check os platform", "system.machine", r"machine: (\w{1,20})"),
    ("check os platform", "system.os", r"freedesktop os release: .*'ID': '([\w.-]{1,30})'.*"),
    (
        "check os platform",
        "system.os_version",
        r"freedesktop os release: .*'VERSION_ID': '([\w.-]{1,30})'.*",
    ),
    ("cat /etc/issue", "system.os_version", r'VERSION_ID="?([\w.-]{1,30})"?'),
    ("tensorflow import", "tensorflow.version", rf"tf\.(?:version\.)?VERSION = ({VERSION})"),
)
"""The section, the fact, and the line that states it."""
_PATTERNS = [(section, path, re.compile(pattern, re.ASCII)) for section, path, pattern in _LINES]


def read_report(lines: Sequence[Line]) -> Iterator[Statement]:
    """Yield what the sections state; the table of nvidia-smi has a reader of its own."""
    section = ""
    for number, text in lines:
        head = _HEAD.fullmatch(text.strip())
        if head is not None:
            section = head[1].strip()
        elif section in _PACKAGES:
            yield from read_rows([(number, text)])
        elif section:
            for name, path, pattern in _PATTERNS:
                found = pattern.fullmatch(text.strip())
                if section == name and found is not None:
                    yield Statement(path, found[1], number)
            unset = _UNSET.fullmatch(text.strip())
            if unset is not None:
                yield Statement(f"environ.{unset[1]}", None, number, is_guess=True)
