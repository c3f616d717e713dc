"""The classic builder, through the SDK: every Docker has it. Its layers always have the same
digests, but its images have different IDs.
"""

from __future__ import annotations

import contextlib
from collections import deque

from envlock.image.engines.daemon import Daemon
from envlock.image.engines.engine import Order, Say
from envlock.image.engines.engine_errors import Trail, explain, follow_classic, select_output


def connect() -> Daemon:
    """Return the daemon that builds; see `Daemon.connect`."""
    return Daemon.connect()


def build(daemon: Daemon, order: Order, say: Say, trail: Trail) -> str:
    """Build with the classic builder and return the image's ID."""
    last: deque[str] = deque(maxlen=1000)
    image = ""
    messages = daemon.build(
        order.context,
        buildargs={"SOURCE_DATE_EPOCH": str(order.epoch)},
        network_mode=order.network,
        nocache=order.no_cache,
        platform=order.platform,
    )
    # Always closed, which ends a build that we leave early.
    with contextlib.closing(messages):
        for message in messages:
            for line in follow_classic(message, trail):
                say(line)
                if "error" not in message:
                    last.append(line)
            if "error" in message:
                raise explain(str(message["error"]), select_output(last))
            if "aux" in message and "ID" in (message["aux"] or {}):
                image = str(message["aux"]["ID"])
    if not image:
        raise explain("it ended without an image", select_output(last))
    return image
