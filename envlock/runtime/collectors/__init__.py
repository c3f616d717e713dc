"""The collectors: one file a subject, one line in `COLLECTORS`.

A collector is a module with `collect(host)`. It returns a tree of facts, None for "looked, there is none", or
`Unavailable`. It reads through the host, imports nothing of what it describes, and leaves no trace.
"""

from __future__ import annotations

from envlock.runtime.collectors import cpu, cuda, environ, gpu, keras, numpy, packages, python, system, tensorflow

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Callable, Dict, Optional, Union

    from envlock.runtime.facts import Tree, Unavailable
    from envlock.runtime.host import Host

    Collector = Callable[[Host], Optional[Union[Tree, Unavailable]]]

COLLECTORS: Dict[str, Collector] = {
    "python": python.collect,
    "packages": packages.collect,
    "tensorflow": tensorflow.collect,
    "cuda": cuda.collect,
    "gpu": gpu.collect,
    "keras": keras.collect,
    "numpy": numpy.collect,
    "cpu": cpu.collect,
    "system": system.collect,
    "environ": environ.collect,
}
