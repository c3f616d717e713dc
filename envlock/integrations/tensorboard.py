"""TensorBoard: the environment of a run as a text summary; TensorFlow is not needed to write it.

from envlock.integrations.tensorboard import write_lock

write_lock("logs/train")
"""

from __future__ import annotations

import os
import time

from tensorboard.compat.proto.event_pb2 import Event
from tensorboard.plugins.text.summary_v2 import text_pb
from tensorboard.summary.writer.event_file_writer import EventFileWriter

import envlock
from envlock.integrations.verdict import describe_environment

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Optional, Union

TAG = "envlock"
SUFFIX = ".envlock"
"""The end of the file's name. Another file of the same second would otherwise have the same name."""


def write_lock(
    folder: Union[str, os.PathLike[str]], path: Optional[Union[str, os.PathLike[str]]] = None
) -> str:
    """Write the environment into the folder of a run, and return the line of the lockfile.

    The text has the tag `envlock`: a table with the values of `describe_environment`.

    Args:
        folder: the folder of the run, such as `logs/train` for the callback of Keras with `logs`.
        path: the lockfile; else the one that `envlock.assert_locked()` would use.

    Raises:
        LockfileError: there is no lockfile, or it is invalid.
    """
    found = describe_environment(envlock.locate(path))
    rows = [f"| {name} | `{value}` |" for name, value in found.items()]
    text = "\n".join(["| envlock | |", "|---|---|", *rows])
    writer = EventFileWriter(os.fspath(folder), filename_suffix=SUFFIX)
    try:
        writer.add_event(Event(wall_time=time.time(), step=0, summary=text_pb(TAG, text)))
    finally:
        writer.close()
    return found["lock"]
