"""Which rank of which job a process is, by the variables of what started it. Pure."""

from __future__ import annotations

from envlock.runtime.errors import UsageError
from envlock.runtime.tables import table

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict, Mapping, Optional

    Environ = Mapping[str, str]

OWN = {key: f"ENVLOCK_FLEET_{key.upper()}" for key in ("rank", "size", "node", "job")}
"""Variables that win over those of launchers, each for itself."""

CLUSTER = "TF_CONFIG"
ORDER = ("chief", "master", "worker", "ps")
"""The order in which TensorFlow numbers tasks; an evaluator is not part of the cluster."""

LONGEST = 64  # characters of a node or a job: a statement has at most 1 KB


class Rank:
    """A process of a job.

    Attributes:
        rank: its number, from 0 on.
        size: how many there are; None where the launcher does not say.
        node: the name of its machine.
        job: what the launcher calls the job; empty where it does not say.
    """

    __slots__ = ("job", "node", "rank", "size")

    def __init__(self, rank: int, size: Optional[int], node: str, job: str = "") -> None:
        self.rank = rank
        self.size = size
        self.node = node
        self.job = job


def rank_of(environ: Environ, host: str) -> Rank:
    """Return which rank a process with these variables is, on the machine `host`.

    Raises:
        UsageError: no launcher says so, or a variable holds no number.
    """
    found = {**_launched(environ), **{key: environ[name] for key, name in OWN.items() if environ.get(name)}}
    if "rank" not in found:
        hint = f"start it with a launcher, or set {OWN['rank']}, {OWN['size']} and {OWN['job']} for each process"
        raise UsageError("cannot find the rank of this process: no launcher has set one", hint=hint)
    rank, size = (_number(found[key], key) if key in found else None for key in ("rank", "size"))
    if rank is None or (size is not None and not rank < size):
        raise UsageError(f"rank {rank} is not one of {size} ranks", hint=f"check {OWN['rank']} and {OWN['size']}")
    return Rank(rank, size, _short(found.get("node") or host), _short(found.get("job", "")))


def _launched(environ: Environ) -> Dict[str, str]:
    """Return what the launcher that numbers the processes says of this one; the nearest comes first."""
    for row in table("launchers"):
        named: Optional[Dict[str, Any]] = row["rank"]
        if named is None or not environ.get(named["rank"]) or (named["needs"] and not environ.get(named["needs"])):
            continue
        if named["rank"] == CLUSTER:
            found = _task(environ[CLUSTER])
            if found:
                return found
            continue
        keys = {key: environ[named[key]] for key in ("rank", "size", "node") if environ.get(named[key] or "")}
        return {**keys, "job": _job(named, environ)}
    return {}


def launched_job(environ: Environ) -> str:
    """Return what a launcher calls the job around a process, as far as it does; empty where there is none."""
    named = [row["rank"] for row in table("launchers") if row["rank"] is not None]
    return next(filter(None, (_job(each, environ) for each in named)), "")


def _job(named: Dict[str, Any], environ: Environ) -> str:
    return ".".join([environ[name] for name in named["job"] if environ.get(name)])


def _task(text: str) -> Dict[str, str]:
    """Return what TF_CONFIG says of this task; nothing for one outside the cluster.

    Source: https://www.tensorflow.org/guide/distributed_training#setting_up_the_tf_config_environment_variable
    """
    from envlock.runtime import strict_json

    try:
        config = strict_json.parse(text.encode("utf-8", "surrogatepass"))
        cluster, task = config["cluster"], config["task"]
        before = [len(cluster.get(each, ())) for each in ORDER]
        place = ORDER.index(task["type"])
        rank = sum(before[:place]) + int(task["index"])
    except (ValueError, KeyError, TypeError, AttributeError):
        return {}
    return {"rank": str(rank), "size": str(sum(before)), "job": "tf-" + _digest(repr(sorted(cluster.items())))}


def _number(text: str, what: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) < 10):
        raise UsageError(f"the {what} of this process is not a number: {text[:40]!r}", hint="check the launcher")
    return int(text)


def _short(text: str) -> str:
    """Return a name that cannot move a cursor nor name another folder, of at most `LONGEST` characters."""
    plain = "".join([char if char.isascii() and (char.isalnum() or char in "-_.@:+") else "_" for char in text])
    plain = plain if plain.strip(".") else plain.replace(".", "_")
    return plain if len(plain) <= LONGEST else plain[: LONGEST - 13] + "-" + _digest(text)


def _digest(text: str) -> str:
    from hashlib import sha256

    return sha256(text.encode("utf-8", "surrogateescape")).hexdigest()[:12]
