"""The access to the machine: collectors read files and ask the kernel only through a `Host`.

`root` is put before every absolute path (`/proc`, `/sys`, `/etc`, `/dev`), so that a test can pass
a folder that looks like another machine. Nothing here writes, runs a program or loads a library.
"""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict, Iterable, List, Mapping, Optional, Tuple

    Mark = Optional[Tuple[int, int, int, int]]
    """The state of a file or folder, None if it does not exist."""

READ_LIMIT = 4 * 1024 * 1024
"""Bytes: the largest file that a collector reads as a whole (the largest seen is a RECORD of 1.5
MB).
"""
_READING = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0)
"""O_NONBLOCK: opening a FIFO without a writer would block for ever."""
_SMALL, _LARGE = 1 << 13, 1 << 18
"""Bytes requested at once: at first, and for longer files (allocating a quarter of a megabyte takes
as long as reading it).
"""


KERNEL = ("/proc/", "/sys/", "/dev/")
"""Folders whose files say nothing by their times."""

_looked: Optional[Dict[str, Mark]] = None


def note(path: str) -> None:
    """Remember the state of a file or folder that is about to be looked at, while `remember` wants it."""
    if _looked is not None and path not in _looked and not path.startswith(KERNEL):
        _looked[path] = get_mark(path)


def remember(looked: Optional[Dict[str, Mark]]) -> None:
    """Note in this object from now on what is looked at; None ends it."""
    global _looked
    _looked = looked


def get_mark(path: str) -> Mark:
    """Return what changes if the entries of a folder or the content of a file do; None without it."""
    try:
        status = os.stat(path)
    except (OSError, ValueError):
        return None
    return (status.st_dev, status.st_ino, status.st_mtime_ns, status.st_size)


class Host:
    """One process on one machine, as the collectors see it.

    Args:
        root: folder that stands for `/` of the machine; it is not put before paths of the Python
            environment.
        environ: the variables as they are now; `os.environ` when not given.
        path: the import path to search for distributions; `sys.path` when not given.
        started_with: the variables the process was started with; `/proc/self/environ` when not
            given.
    """

    def __init__(
        self,
        root: str = "/",
        environ: Optional[Mapping[str, str]] = None,
        path: Optional[List[str]] = None,
        started_with: Optional[Mapping[str, str]] = None,
    ) -> None:
        self.root = root
        self.environ: Mapping[str, str] = environ if environ is not None else os.environ
        self.path = path if path is not None else sys.path
        self.cache: Dict[str, Any] = {}
        """Results of one collector that another one needs; valid as long as the host exists."""
        self.own_package: Optional[str] = None
        """The project's own package, if its source is not compared, and so not read."""
        self._start: Optional[Mapping[str, str]] = started_with

    def system(self, path: str) -> str:
        """Return the path of the machine's absolute `path` below `root`."""
        return self.root.rstrip("/") + path

    def read(self, path: str, limit: int = READ_LIMIT) -> Optional[str]:
        """Return a file of the machine as text (undecodable bytes survive), or None if it does not
        exist.

        Raises:
            OSError: it exists and cannot be read.
        """
        return read_text(self.system(path), limit)

    def exists(self, path: str) -> bool:
        """Return whether the machine has this path."""
        return os.path.exists(self.system(path))

    def listdir(self, path: str) -> List[str]:
        """Return the sorted names in a folder of the machine; an empty list if it cannot be listed."""
        try:
            return sorted(os.listdir(self.system(path)))
        except OSError:
            return []

    def start_environ(self) -> Mapping[str, str]:
        """Return the variables this process was started with; `environ` if the kernel does not
        report them.

        `os.environ` may have been changed since; the dynamic loader and glibc read only these.
        """
        if self._start is None:
            try:
                text = self.read("/proc/self/environ")
            except OSError:
                text = None
            # A process that has set its title (Ray's workers, gunicorn, Celery, with setproctitle)
            # has overwritten its variables with zeros after the title.
            if text is None or text.startswith("\0") or text.endswith("\0\0"):
                self._start = dict(self.environ)
            else:
                self._start = _parse_environ(text)
        return self._start

    def affinity(self) -> Optional[int]:
        """Return how many CPUs this process may run on; None if the system has no affinity mask."""
        ask = getattr(os, "sched_getaffinity", None)  # Linux only
        if ask is None:
            return None
        return len(ask(0))

    def uname(self) -> Tuple[str, str, str]:
        """Return (kernel name, kernel release, machine); a personality of 32 bits does not count."""
        name = os.uname()
        machine = name.machine
        if sys.maxsize > 2**32:  # of the interpreter, which computes
            machine = _AS_32_BITS.get(machine, machine)
        return name.sysname, name.release, machine

    def list_c_variables(self, names: Iterable[str]) -> Optional[Dict[str, Optional[str]]]:
        """Return some variables as C code finds them; None if nothing in this process can have changed
        them without `os.environ`, or the C library does not say.

        `setenv` and `putenv` do not change `os.environ`. What calls them from Python is ctypes, or an
        extension module beside NumPy, which imports ctypes.
        """
        ctypes = sys.modules.get("ctypes")
        if ctypes is None or self.environ is not os.environ:
            return None
        try:
            getenv = ctypes.CDLL(None).getenv
        except (AttributeError, OSError):
            return None
        getenv.restype = ctypes.c_char_p
        found = {name: getenv(name.encode("ascii")) for name in names}
        return {
            name: value if value is None else os.fsdecode(value) for name, value in found.items()
        }

    def has_imported(self, module: str) -> bool:
        """Return whether this process has imported `module` already."""
        return module in sys.modules


_AS_32_BITS = {"i386": "x86_64", "i686": "x86_64", "armv8l": "aarch64"}
"""What `setarch linux32` makes the kernel say: https://man7.org/linux/man-pages/man2/personality.2.html"""


def _parse_environ(text: str) -> Dict[str, str]:
    """Return the variables that /proc/PID/environ lists."""
    variables = {}
    for entry in text.split("\0"):
        name, sign, value = entry.partition("=")
        if sign:
            variables[name] = value
    return variables


def read_bytes(path: str, limit: int = READ_LIMIT, *, is_noted: bool = True) -> Optional[bytes]:
    """Return up to `limit` bytes of a file, or None if it does not exist.

    Raises:
        OSError: it exists and cannot be read.
    """
    if is_noted:
        note(path)
    try:
        fd = os.open(path, _READING)
    except (FileNotFoundError, NotADirectoryError):
        return None
    try:
        data = more = os.read(fd, min(limit, _SMALL))
        # /proc gives no size, so read until the end
        while more and len(data) < limit:
            size = _SMALL if len(data) < _SMALL else _LARGE
            more = os.read(fd, min(limit - len(data), size))
            data += more
        return data
    finally:
        os.close(fd)


def read_text(path: str, limit: int = READ_LIMIT, *, is_noted: bool = True) -> Optional[str]:
    """Return a file as text, whatever its bytes are, or None if it does not exist.

    Raises:
        OSError: it exists and cannot be read.
    """
    data = read_bytes(path, limit, is_noted=is_noted)
    if data is None:
        return None
    return data.decode("utf-8", "surrogateescape")
