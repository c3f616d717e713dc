"""Which rank of which job a process is, by the variables of what started it. Pure."""

from __future__ import annotations

from envlock.runtime.assertion import ENFORCING, MODES
from envlock.runtime.errors import UsageError
from envlock.runtime.fleet.node_names import IN_NAMES
from envlock.runtime.report import count
from envlock.runtime.tables import table

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict, Mapping, Optional, Tuple

    from envlock.runtime.report import Report

    Environ = Mapping[str, str]

OWN = {key: f"ENVLOCK_FLEET_{key.upper()}" for key in ("rank", "size", "node", "job")}
"""Variables that win over those of launchers, each for itself."""

CLUSTER = "TF_CONFIG"
ORDER = ("chief", "master", "worker")
"""The order in which TensorFlow numbers the tasks that compute together."""

ASIDE = ("evaluator", "ps")
"""Tasks that can run the same program, and that no other task waits for: an evaluator is not part of the cluster, and a
parameter server may never call."""

LONGEST = 64  # characters of a node or a job: a statement has at most 1 KB


class Disagreement(Exception):  # noqa: N818 (it is an answer, not a fault)
    """Two sources number this process differently, so that it cannot tell whom to meet.

    Attributes:
        report: what they say.
        is_first: whether one of them calls it rank 0.
    """

    def __init__(self, report: Report, *, is_first: bool) -> None:
        super().__init__(report.headline)
        self.report = report
        self.is_first = is_first


class Rank:
    """A process of a job.

    Attributes:
        rank: its number, from 0 on.
        size: how many there are; None where the launcher does not say.
        node: the name of its machine.
        job: what the launcher calls the job; empty where it does not say.
        mode: what ENVLOCK_MODE says.
        is_aside: whether it is no rank, and is compared with the lockfile only.
    """

    __slots__ = ("is_aside", "job", "mode", "node", "rank", "size")

    def __init__(
        self,
        rank: int,
        size: Optional[int],
        node: str,
        job: str = "",
        mode: str = ENFORCING[0],
        *,
        is_aside: bool = False,
    ) -> None:
        self.rank = rank
        self.size = size
        self.node = node
        self.job = job
        self.mode = mode
        self.is_aside = is_aside


def rank_of(environ: Environ, host: str) -> Rank:
    """Return which rank a process with these variables is, on the machine `host`.

    Raises:
        UsageError: no launcher says so, or a variable holds no number.
    """
    names = told(environ)
    found = {key: value for key, (value, _) in names.items()}
    if "rank" not in found and _cluster_of(environ.get(CLUSTER, "")) == {}:
        hint = (
            f"name the tasks in {CLUSTER}; for one process, set {OWN['rank']}=0 and {OWN['size']}=1"
        )
        raise UsageError(
            f"cannot find the rank of this process: the cluster of {CLUSTER} is empty", hint=hint
        )
    if "rank" not in found:
        hint = f"start it with a launcher, or set {OWN['rank']}, {OWN['size']} and {OWN['job']} for each process"
        raise UsageError("cannot find the rank of this process: no launcher has set one", hint=hint)
    rank, size = (_number(found[key], key) if key in found else None for key in ("rank", "size"))
    if rank is None or (size is not None and not rank < size):
        sources = {names[key][1]: None for key in ("rank", "size")}
        raise UsageError(
            f"rank {rank} is not one of {count(size or 0, 'rank')}",
            hint=f"check {' and '.join(sources)}",
        )
    mode = environ.get(
        "ENVLOCK_MODE", ""
    ).lower()  # one that does not exist is an error where this rank looks
    mode = mode if mode in MODES else ENFORCING[0]
    node, job = _short(found.get("node") or host), _short(found.get("job", ""))
    return Rank(
        rank, size, node, job, mode, is_aside="aside" in found and not environ.get(OWN["rank"])
    )


def told(environ: Environ) -> Dict[str, Tuple[str, str]]:
    """Return rank, size, node and job, each with the variable that holds it, as far as variables do.

    `aside` is what a task of TF_CONFIG is that is no rank.
    """
    own = {key: (environ[name], name) for key, name in OWN.items() if environ.get(name)}
    return {**_launched(environ), **own}


def _launched(environ: Environ) -> Dict[str, Tuple[str, str]]:
    """Return what the launcher that numbers the processes says of this one; the nearest comes first."""
    for row in table("launchers"):
        named: Optional[Dict[str, Any]] = row["rank"]
        if (
            named is None
            or not environ.get(named["rank"])
            or (named["needs"] and not environ.get(named["needs"]))
        ):
            continue
        if named["rank"] == CLUSTER:
            found = _task(environ[CLUSTER])
            if found:
                return {key: (value, CLUSTER) for key, value in found.items()}
            continue
        keys = {
            key: named[key] for key in ("rank", "size", "node") if environ.get(named[key] or "")
        }
        words = (
            _among_hosts(named, environ)
            if named["hosts"]
            else {key: environ[name] for key, name in keys.items()}
        )
        if words:
            return {
                **{key: (word, named[key]) for key, word in words.items()},
                "job": (_job(named, environ), ""),
            }
    return {}


def _among_hosts(named: Dict[str, Any], environ: Environ) -> Dict[str, str]:
    """Return the number of a host among all hosts, their number, and its name; nothing where the list lacks it."""
    hosts, host = _parsed(environ.get(named["size"], "")), environ[named["rank"]]
    if (
        not isinstance(hosts, list)
        or host not in hosts
        or not all(isinstance(each, str) for each in hosts)
    ):
        return {}
    names = sorted(set(hosts))
    return {"rank": str(names.index(host)), "size": str(len(names)), "node": host}


def launched_job(environ: Environ) -> str:
    """Return what a launcher calls the job around a process, as far as it does; empty where there is none."""
    named = [row["rank"] for row in table("launchers") if row["rank"] is not None]
    return next(filter(None, (_job(each, environ) for each in named)), "")


def _job(named: Dict[str, Any], environ: Environ) -> str:
    found = ".".join(
        [environ[name].partition("#")[0] for name in named["job"] if environ.get(name)]
    )
    if found and found == named["unnamed"]:  # one word for many jobs would let their ranks meet
        return ".".join([environ[name] for name in named["instead"] if environ.get(name)])
    return found


def _cluster_of(text: str) -> Any:
    """Return the cluster of TF_CONFIG; None where there is none."""
    config = _parsed(text)
    return config.get("cluster") if isinstance(config, dict) else None


def _parsed(text: str) -> Any:
    """Return TF_CONFIG; None where it is not JSON."""
    from envlock.runtime import strict_json

    try:
        return strict_json.parse(text.encode("utf-8", "surrogatepass"))
    except ValueError:
        return None


def _task(text: str) -> Dict[str, str]:
    """Return what TF_CONFIG says of this task; nothing where it names no such task.

    Source: https://www.tensorflow.org/guide/distributed_training#setting_up_the_tf_config_environment_variable
    """
    config = _parsed(text)
    try:
        cluster, task = config["cluster"], config["task"]
        before = [len(cluster.get(each, ())) for each in ORDER]
        if task["type"] in ASIDE:
            return {"rank": "0", "size": "1", "aside": task["type"]}
        place = ORDER.index(task["type"])
        rank = sum(before[:place]) + int(task["index"])
    except (ValueError, KeyError, TypeError, AttributeError):
        return {}
    if not cluster:
        return {}
    return {
        "rank": str(rank),
        "size": str(sum(before)),
        "job": "tf-" + _digest(repr(sorted(cluster.items()))),
    }


def _number(text: str, what: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) < 10):
        raise UsageError(
            f"the {what} of this process is not a number: {text[:40]!r}", hint="check the launcher"
        )
    return int(text)


def _short(text: str) -> str:
    """Return a name that cannot move a cursor nor name another folder, of at most `LONGEST` characters."""
    plain = "".join(
        [char if char.isascii() and (char.isalnum() or char in IN_NAMES) else "_" for char in text]
    )
    plain = plain if plain.strip(".") else plain.replace(".", "_")
    return plain if len(plain) <= LONGEST else plain[: LONGEST - 13] + "-" + _digest(text)


def _digest(text: str) -> str:
    from hashlib import sha256

    return sha256(text.encode("utf-8", "surrogateescape")).hexdigest()[:12]
