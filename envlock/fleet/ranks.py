"""Which rank of which job a process is, by the variables of what started it. Pure."""

from __future__ import annotations

from hashlib import sha256

from envlock.fleet.node_names import IN_NAMES
from envlock.runtime import strict_json
from envlock.runtime.assertion import ENFORCING, MODES
from envlock.runtime.errors import UsageError
from envlock.runtime.report import count
from envlock.runtime.tables import table

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict, Mapping, Optional, Tuple

    from envlock.runtime.report import Report

    Environ = Mapping[str, str]

    Row = Mapping[str, Any]
    """What the table of launchers says of the ranks of one."""

    Source = Tuple[str, str]
    """A value, and the variable that holds it."""

OWN = {
    "rank": "ENVLOCK_FLEET_RANK",
    "size": "ENVLOCK_FLEET_SIZE",
    "node": "ENVLOCK_FLEET_NODE",
    "job": "ENVLOCK_FLEET_JOB",
}
"""Variables that win over those of launchers, each for itself."""

CLUSTER = "TF_CONFIG"
ORDER = ("chief", "master", "worker")
"""The order in which TensorFlow numbers the tasks that compute together."""

ASIDE = ("evaluator", "ps")
"""Tasks that can run the same program, and that no other task waits for: an evaluator is not part
of the cluster, and a parameter server may never call."""

LONGEST = 64
"""Characters of a node or a job: a statement has at most 1 KB."""


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


def find_rank(environ: Environ, host: str) -> Rank:
    """Return which rank a process with these variables is, on the machine `host`.

    Raises:
        UsageError: no launcher says so, or a variable holds no number.
    """
    sources = get_sources(environ)
    values = {key: value for key, (value, _) in sources.items()}
    if "rank" not in values:
        raise _make_no_rank(environ)
    rank = _parse_number(values["rank"], "rank")
    size = None
    if "size" in values:
        size = _parse_number(values["size"], "size")
        if rank >= size:
            variables = dict.fromkeys([sources["rank"][1], sources["size"][1]])
            raise UsageError(
                f"rank {rank} is not one of {count(size, 'rank')}",
                hint=f"check {' and '.join(variables)}",
            )
    mode = environ.get("ENVLOCK_MODE", "").lower()
    # One that does not exist is an error where this rank looks, and said there.
    if mode not in MODES:
        mode = ENFORCING[0]
    node = _make_name(values.get("node") or host)
    job = _make_name(values.get("job", ""))
    is_aside = "aside" in values and not environ.get(OWN["rank"])
    return Rank(rank, size, node, job, mode, is_aside=is_aside)


def _make_no_rank(environ: Environ) -> UsageError:
    if _get_cluster(environ.get(CLUSTER, "")) == {}:
        return UsageError(
            f"cannot find the rank of this process: the cluster of {CLUSTER} is empty",
            hint=f"name the tasks in {CLUSTER}; "
            f"for one process, set {OWN['rank']}=0 and {OWN['size']}=1",
        )
    variables = f"{OWN['rank']}, {OWN['size']} and {OWN['job']}"
    return UsageError(
        "cannot find the rank of this process: no launcher has set one",
        hint=f"start it with a launcher, or set {variables} for each process",
    )


def get_sources(environ: Environ) -> Dict[str, Source]:
    """Return rank, size, node and job, each with the variable that holds it, as far as variables do.

    `aside` is what a task of TF_CONFIG is that is no rank.
    """
    sources = _get_launcher_sources(environ)
    for key, name in OWN.items():
        if environ.get(name):
            sources[key] = (environ[name], name)
    return sources


def _get_launcher_sources(environ: Environ) -> Dict[str, Source]:
    """Return what the launcher that numbers the processes says of this one; the nearest comes first."""
    for row in table("launchers"):
        named: Optional[Row] = row["rank"]
        if named is None or not environ.get(named["rank"]):
            continue
        if named["needs"] and not environ.get(named["needs"]):
            continue
        if named["rank"] == CLUSTER:
            task = _parse_task(environ[CLUSTER])
            if task:
                return _add_variable(task, dict.fromkeys(task, CLUSTER))
            continue
        if named["hosts"]:
            values = _find_among_hosts(named, environ)
        else:
            values = {}
            for key in ("rank", "size", "node"):
                if environ.get(named[key] or ""):
                    values[key] = environ[named[key]]
        if values:
            return {**_add_variable(values, named), "job": (_get_job(named, environ), "")}
    return {}


def _add_variable(values: Mapping[str, str], variables: Mapping[str, str]) -> Dict[str, Source]:
    """Return values with the variable that holds each."""
    return {key: (value, variables[key]) for key, value in values.items()}


def _find_among_hosts(named: Row, environ: Environ) -> Dict[str, str]:
    """Return the number of a host among all hosts, their number, and its name.

    Nothing where the list lacks it.
    """
    hosts = _parse_json(environ.get(named["size"], ""))
    host = environ[named["rank"]]
    if not isinstance(hosts, list) or host not in hosts:
        return {}
    if not all(isinstance(each, str) for each in hosts):
        return {}
    names = sorted(set(hosts))
    return {"rank": str(names.index(host)), "size": str(len(names)), "node": host}


def find_launched_job(environ: Environ) -> str:
    """Return what a launcher calls the job around a process; empty where there is none."""
    for row in table("launchers"):
        if row["rank"] is not None:
            job = _get_job(row["rank"], environ)
            if job:
                return job
    return ""


def count_restarts(environ: Environ) -> int:
    """Return how often its launcher has started this job again; 0 where none says so."""
    for row in table("launchers"):
        named: Optional[Row] = row["rank"]
        if named is not None and named["restarts"]:
            number = environ.get(named["restarts"], "")
            if number.isascii() and number.isdigit() and len(number) < 10:
                return int(number)
    return 0


def _get_job(named: Row, environ: Environ) -> str:
    words = [environ[name].partition("#")[0] for name in named["job"] if environ.get(name)]
    job = ".".join(words)
    # One word for many jobs would let their ranks meet.
    if job and job == named["unnamed"]:
        return ".".join([environ[name] for name in named["instead"] if environ.get(name)])
    return job


def _get_cluster(text: str) -> object:
    """Return the cluster of TF_CONFIG; None where there is none."""
    config = _parse_json(text)
    if not isinstance(config, dict):
        return None
    return config.get("cluster")


def _parse_json(text: str) -> object:
    """Return the value of a variable; None where it is not JSON."""
    try:
        value: object = strict_json.parse(text.encode("utf-8", "surrogatepass"))
    except ValueError:
        return None
    return value


def _parse_task(text: str) -> Dict[str, str]:
    """Return what TF_CONFIG says of this task; nothing where it names no such task.

    Source:
    https://www.tensorflow.org/guide/distributed_training#setting_up_the_tf_config_environment_variable
    """
    config: Any = _parse_json(text)
    try:
        cluster, task = config["cluster"], config["task"]
        numbers = [len(cluster.get(kind, ())) for kind in ORDER]
        if task["type"] in ASIDE:
            return {"rank": "0", "size": "1", "aside": task["type"]}
        place = ORDER.index(task["type"])
        rank = sum(numbers[:place]) + int(task["index"])
    except (ValueError, KeyError, TypeError, AttributeError):
        return {}
    if not cluster:
        return {}
    job = "tf-" + _digest(repr(sorted(cluster.items())))
    return {"rank": str(rank), "size": str(sum(numbers)), "job": job}


def _parse_number(text: str, what: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) < 10):
        raise UsageError(
            f"the {what} of this process is not a number: {text[:40]!r}", hint="check the launcher"
        )
    return int(text)


def _make_name(text: str) -> str:
    """Return a name that cannot move a cursor nor name another folder, of at most `LONGEST` characters."""
    name = ""
    for char in text:
        if char.isascii() and (char.isalnum() or char in IN_NAMES):
            name += char
        else:
            name += "_"
    # Dots alone would name this folder, or the one above it.
    if not name.strip("."):
        name = name.replace(".", "_")
    if len(name) <= LONGEST:
        return name
    return name[: LONGEST - 13] + "-" + _digest(text)


def _digest(text: str) -> str:
    return sha256(text.encode("utf-8", "surrogateescape")).hexdigest()[:12]
