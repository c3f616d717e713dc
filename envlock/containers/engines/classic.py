"""The classic builder, by the SDK: every Docker has it. Its images are the same layer for layer, not in their ID."""

from __future__ import annotations

import contextlib
from collections import deque

from envlock.containers.engines.daemon import Daemon
from envlock.containers.engines.engine import Order, Say
from envlock.containers.engines.failures import Trail, explain, follow_classic, words


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
        labels=dict(order.labels),
        network_mode=order.network,
        nocache=order.no_cache,
        platform=order.platform,
    )
    with contextlib.closing(messages):  # which ends the build, where we do not stay to its end
        for message in messages:
            for line in follow_classic(message, trail):
                say(line)
                if "error" not in message:
                    last.append(line)
            if "error" in message:
                raise explain(str(message["error"]), words(last))
            if "aux" in message and "ID" in (message["aux"] or {}):
                image = str(message["aux"]["ID"])
    if not image:
        raise explain("it ended without an image", words(last))
    return image
