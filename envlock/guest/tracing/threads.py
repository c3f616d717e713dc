"""Operations of other Python threads: each thread that begins during a run has a trace of its own.

Their order among threads is up to chance, so one trace for all would differ each time. Beside the traces, the order in
which threads used each variable is kept: where it differs from run to run, the threads race.
"""

from __future__ import annotations

import threading
from contextlib import contextmanager
from hashlib import blake2b

from envlock.guest.tracing import private
from envlock.guest.tracing.trace_writer import TraceWriter

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, BinaryIO, Dict, Iterator, List, Optional, Set, Tuple

    Key = Tuple[int, ...]
    Place = Tuple[str, int, str]

POOLS = ("concurrent.futures.thread", "multiprocessing.pool")
"""Modules whose threads take whatever work comes next, so that other operations in one of them mean nothing."""
MOST = 64
"""How many threads of a run have a trace; operations of more are counted."""
REPLICA = "_MirroredReplicaThread"
"""A thread of tf.distribute for one replica: in eager mode they run one after the other, as part of the thread that
waits for them (tensorflow/python/distribute/mirrored_run.py), so their operations have a fixed place in its trace."""


class Uses:
    """Who used a variable, in which order."""

    def __init__(self, name: Optional[str]) -> None:
        """Begin with nobody."""
        self.name = name
        self.order = blake2b(digest_size=8)
        self.reads: List[str] = []  # since the last change; their own order is no matter
        self.threads: Set[str] = set()
        self.writers: Set[str] = set()
        self.place: Optional[Place] = None  # where the last thread changed it
        self.kind = ""

    def take(self, who: str, kind: str, place: Optional[Place], *, changed: bool) -> None:
        """Take a use by thread `who`."""
        self.threads.add(who)
        if not changed:
            self.reads.append(who)
            return
        self.order.update(" ".join([*sorted(self.reads), who, kind, ""]).encode())
        self.reads.clear()
        self.writers.add(who)
        if who != "main":
            self.place, self.kind = place, kind


class Threads:
    """The threads of one run, by the order in which each was begun by its parent."""

    def __init__(self, path: str, header: Dict[str, Any]) -> None:
        """`path` is that of the run's own trace; those of threads lie beside it."""
        self._path = path
        self._header = header
        self.lock = threading.RLock()
        self._mine = threading.local()
        self._begun: Dict[Key, int] = {}
        self._streams: Dict[Key, Tuple[BinaryIO, TraceWriter]] = {}
        self._uses: Dict[int, Uses] = {}
        self._held: List[Any] = []  # so that no identity comes again
        self._starts: Dict[Key, int] = {}
        self._pools: Set[Key] = set()
        self._over = False

    @contextmanager
    def followed(self, callback: Any, count: Any) -> Iterator[None]:
        """Let `callback` see operations of threads that begin inside; `count` tells how far the run's own trace is."""
        original = threading.Thread.start

        def start(thread: threading.Thread) -> None:
            if type(thread).__name__ != REPLICA:
                self._adopt(thread, callback, count())
            original(thread)

        threading.Thread.start = start  # type: ignore[method-assign,assignment]
        try:
            yield
        finally:
            threading.Thread.start = original  # type: ignore[method-assign]
            self._close()

    def _adopt(self, thread: threading.Thread, callback: Any, entries: int) -> None:
        parent: Key = getattr(self._mine, "key", ())
        with self.lock:
            number = self._begun[parent] = self._begun.get(parent, 0) + 1
            key = (*parent, number)
            self._starts[key] = entries if not parent else self._starts[parent]
            if getattr(getattr(thread, "_target", None), "__module__", None) in POOLS:
                self._pools.add(key)
        run = thread.run

        def followed() -> None:
            self._mine.key = key
            try:
                private.add(callback)
            except private.CallbacksMissing:
                pass
            run()

        thread.run = followed  # type: ignore[method-assign]

    @property
    def begun(self) -> bool:
        """Whether any other thread has begun."""
        return bool(self._begun)

    @property
    def entries(self) -> int:
        """How many entries the traces of other threads have."""
        with self.lock:
            return sum(writer.count for _, writer in self._streams.values())

    def writer(self) -> Optional[TraceWriter]:
        """Return where this thread's operations are written; None where they are not."""
        key = getattr(self._mine, "key", None)
        if key is None or self._over:
            return None
        with self.lock:
            if key not in self._streams:
                if len(self._streams) >= MOST or self._over:
                    return None
                stream = open(self._path + "." + "-".join(map(str, key)), "wb")  # noqa: SIM115 (`_close` closes it)
                self._streams[key] = stream, TraceWriter(stream, self._header)
                self._streams[key][1].step(0)
        return self._streams[key][1]

    def used(self, handle: Any, kind: str, place: Optional[Place], *, changed: bool) -> None:
        """Note that this thread uses a variable."""
        who = "-".join(map(str, getattr(self._mine, "key", ()))) or "main"
        with self.lock:
            uses = self._uses.get(id(handle))
            if uses is None:
                uses = self._uses[id(handle)] = Uses(getattr(handle, "_envlock_name", None))
                self._held.append(handle)
            uses.take(who, kind, place, changed=changed)

    def _close(self) -> None:
        with self.lock:
            self._over = True
            for stream, writer in self._streams.values():
                writer.close({})
                stream.close()

    def to_json(self) -> Dict[str, Any]:
        """Return where each thread began in the run's own trace, and how threads used the variables that they share."""
        shared = [
            each
            for each in self._uses.values()
            if len(each.threads) > 1 and each.writers - {"main"}
        ]
        return {
            "begun": sum(self._begun.values()),
            "starts": {"-".join(map(str, key)): self._starts[key] for key in self._streams},
            "pools": ["-".join(map(str, key)) for key in sorted(self._pools)],
            "shared": [
                {
                    "name": each.name,
                    "order": each.order.hexdigest(),
                    "threads": len(each.threads - {"main"}),
                    "place": each.place,
                    "type": each.kind,
                }
                for each in shared
            ],
        }
