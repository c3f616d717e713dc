"""Operations of other Python threads: each thread that starts during a run has its own trace.

The order among threads varies, so a common trace would differ each time. In addition to the traces,
the order in which threads used each variable is recorded: if it differs from run to run, the
threads race.
"""

from __future__ import annotations

import threading
from contextlib import contextmanager
from hashlib import blake2b

from envlock.guest.tracing import private
from envlock.guest.tracing.trace_writer import TraceWriter

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import BinaryIO, Callable, Dict, Iterator, List, Mapping, Optional, Set, Tuple

    from tensorflow import Tensor

    Key = Tuple[int, ...]
    Place = Tuple[str, int, str]

POOLS = ("concurrent.futures.thread", "multiprocessing.pool")
"""Modules whose threads run whatever work comes next, so that different operations in one of them
mean nothing.
"""
MOST = 64
"""How many threads of a run have a trace; the operations of further threads are only counted."""
REPLICA = "_MirroredReplicaThread"
"""A thread of tf.distribute for one replica: in eager mode they run one after the other, as part of
the thread that waits for them (tensorflow/python/distribute/mirrored_run.py), so their operations
have a fixed place in its trace.
"""


class Uses:
    """The order in which threads used a variable."""

    def __init__(self, name: Optional[str]) -> None:
        """Begin without a use."""
        self.name = name
        self.order = blake2b(digest_size=8)
        self.reads: List[str] = []  # since the last change; their own order does not matter
        self.threads: Set[str] = set()
        self.writers: Set[str] = set()
        self.place: Optional[Place] = None  # where a thread other than the main one changed it last
        self.kind = ""

    def add(self, thread: str, kind: str, place: Optional[Place], *, is_change: bool) -> None:
        """Add a use by a thread."""
        self.threads.add(thread)
        if not is_change:
            self.reads.append(thread)
            return
        self.order.update(" ".join([*sorted(self.reads), thread, kind, ""]).encode())
        self.reads.clear()
        self.writers.add(thread)
        if thread != "main":
            self.place, self.kind = place, kind

    @property
    def are_shared(self) -> bool:
        """Whether several threads used it, and not only the main thread changed it."""
        return len(self.threads) > 1 and bool(self.writers - {"main"})

    def to_json(self) -> Dict[str, object]:
        """Return the digest of the order, the number of threads other than the main one, and the
        last change.
        """
        return {
            "name": self.name,
            "order": self.order.hexdigest(),
            "threads": len(self.threads - {"main"}),
            "place": self.place,
            "type": self.kind,
        }


class Threads:
    """The threads of one run, identified by the order in which their parents started them."""

    def __init__(self, path: str, header: Mapping[str, object]) -> None:
        """`path` is that of the run's own trace; those of threads are stored beside it."""
        self._path = path
        self._header = header
        self.lock = threading.RLock()
        self._local = threading.local()
        self._children: Dict[Key, int] = {}  # how many threads each has started
        self._streams: Dict[Key, Tuple[BinaryIO, TraceWriter]] = {}
        self._uses: Dict[int, Uses] = {}
        self._handles: List[Tensor] = []  # kept alive, so that no identity is reused
        self._starts: Dict[Key, int] = {}
        self._pools: Set[Key] = set()
        self._is_over = False

    @contextmanager
    def follow(self, callback: Callable[..., None], entries: Callable[[], int]) -> Iterator[None]:
        """Call `callback` for operations of threads that start in the block.

        `entries` returns the number of entries in the run's own trace.
        """
        original = threading.Thread.start

        def start(thread: threading.Thread) -> None:
            if type(thread).__name__ != REPLICA:
                self._adopt(thread, callback, entries())
            original(thread)

        threading.Thread.start = start  # type: ignore[method-assign,assignment]
        try:
            yield
        finally:
            threading.Thread.start = original  # type: ignore[method-assign]
            self._close()

    def _adopt(self, thread: threading.Thread, callback: Callable[..., None], entries: int) -> None:
        """Give a thread that is about to start its key, and make it observe its own operations."""
        parent: Key = getattr(self._local, "key", ())
        with self.lock:
            number = self._children[parent] = self._children.get(parent, 0) + 1
            key = (*parent, number)
            self._starts[key] = self._starts[parent] if parent else entries
            if getattr(getattr(thread, "_target", None), "__module__", None) in POOLS:
                self._pools.add(key)
        run = thread.run

        def run_watched() -> None:
            self._local.key = key
            try:
                private.add_callback(callback)
            except private.CallbacksMissing:
                pass
            run()

        thread.run = run_watched  # type: ignore[method-assign]

    @property
    def are_begun(self) -> bool:
        """Whether any other thread has started."""
        return bool(self._children)

    @property
    def entries(self) -> int:
        """The number of entries in the traces of other threads."""
        with self.lock:
            return sum(writer.count for _, writer in self._streams.values())

    def get_writer(self) -> Optional[TraceWriter]:
        """Return the writer for this thread's operations; None if they are not written."""
        key = getattr(self._local, "key", None)
        if key is None or self._is_over:
            return None
        with self.lock:
            if key not in self._streams:
                # Again, with other threads locked out: the run can have ended in the meantime.
                if len(self._streams) >= MOST or self._is_over:
                    return None
                stream = open(self._path + "." + _format_key(key), "wb")  # noqa: SIM115 (`_close` closes it)
                writer = TraceWriter(stream, self._header)
                self._streams[key] = stream, writer
                writer.begin_step(0)
        return self._streams[key][1]

    def add_use(
        self, handle: Tensor, kind: str, place: Optional[Place], *, is_change: bool
    ) -> None:
        """Record that this thread uses a variable."""
        thread = _format_key(getattr(self._local, "key", ())) or "main"
        with self.lock:
            uses = self._uses.get(id(handle))
            if uses is None:
                uses = self._uses[id(handle)] = Uses(getattr(handle, "_envlock_name", None))
                self._handles.append(handle)
            uses.add(thread, kind, place, is_change=is_change)

    def _close(self) -> None:
        with self.lock:
            self._is_over = True
            for stream, writer in self._streams.values():
                writer.close({})
                stream.close()

    def to_json(self) -> Dict[str, object]:
        """Return where each thread started in the run's own trace, and how threads used the
        variables that they share.
        """
        shared = [uses.to_json() for uses in self._uses.values() if uses.are_shared]
        return {
            "begun": sum(self._children.values()),
            "starts": {_format_key(key): self._starts[key] for key in self._streams},
            "pools": [_format_key(key) for key in sorted(self._pools)],
            "shared": shared,
        }


def _format_key(key: Key) -> str:
    """Return the name of a thread: `2-1` is the first thread that the second one has started."""
    return "-".join(map(str, key))
