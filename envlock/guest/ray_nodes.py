"""Runs a program of this room on every node of a Ray cluster, as a rank a node, and keeps what each prints.

Runs where Ray is installed, in the interpreter of the environment. Argument: JSON with

    folder, job   where to keep it; nodes need not share the folder
    program       the arguments of an interpreter; the folder of this package must be at the same place on every node
    is_canary     true: what it prints is kept as bits.py keeps it. Else it is a statement with its facts
    timeout       seconds to wait for all nodes
    nodes         how many there have to be; null: those that are alive
"""

from __future__ import annotations

import json
import os
import sys

from envlock.fleet.folder import Folder
from envlock.fleet.ranks import OWN

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict, Iterator, List, Tuple


def main() -> None:
    """Keep what each node says; exit with 5 where there is no cluster."""
    asked = json.loads(sys.argv[1])
    sys.argv[1:] = []
    try:
        import ray

        ray.init(address="auto", log_to_driver=False, logging_level="ERROR")
    except (ImportError, ConnectionError, RuntimeError, OSError) as error:
        sys.stderr.write("no Ray cluster: {}\n".format(str(error).strip().split("\n")[0]))
        sys.stderr.flush()
        os._exit(5)
    folder = Folder(asked["folder"], asked["job"])
    for rank, output in _outputs(ray, folder, asked):
        if asked["is_canary"]:
            with open(os.path.join(folder.path, f"bits-{rank}.txt"), "wb") as stream:
                stream.write(output)
        else:
            folder.keep(
                *json.loads(output.rpartition(b"\n")[2])
            )  # what it has imported can have printed lines
    os._exit(0)  # not through the shutdown of Ray, which waits for tasks that hang


def _outputs(ray: Any, folder: Folder, asked: Dict[str, Any]) -> Iterator[Tuple[int, bytes]]:
    """Yield each rank with what it has printed; nothing of a node that is lost, or where the program failed."""
    from ray import cloudpickle
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    cloudpickle.register_pickle_by_value(sys.modules[__name__])  # workers may not have this package
    names = {
        each["NodeID"]: each.get("NodeName") or each["NodeManagerHostname"] for each in ray.nodes()
    }
    ranks = folder.peek("nodes") or sorted(
        [each["NodeID"] for each in ray.nodes() if each["Alive"]]
    )
    folder.post("nodes", ranks)  # the next program has the same ranks
    task = ray.remote(num_cpus=0, max_retries=0)(run)
    waiting = {}
    for rank, node in enumerate(ranks):
        where = NodeAffinitySchedulingStrategy(node_id=node, soft=False)
        who = {"rank": rank, "size": max(asked["nodes"] or 0, len(ranks)), "job": asked["job"]}
        environ = {OWN[key]: str(value) for key, value in who.items()}
        asks = (asked["program"], {OWN["node"]: names[node]}, environ, asked["timeout"])
        waiting[task.options(scheduling_strategy=where).remote(*asks)] = rank
    done, _ = ray.wait(list(waiting), num_returns=len(waiting), timeout=asked["timeout"])
    for each in done:
        rank = waiting[each]
        try:
            yield rank, ray.get(each, timeout=1)
        except Exception as error:  # of a node that has died, or of the program
            sys.stderr.write(f"node {names[ranks[rank]]}: {str(error).strip().splitlines()[-1]}\n")


def run(
    program: List[str], defaults: Dict[str, str], environ: Dict[str, str], timeout: float
) -> bytes:
    """Return what a program prints on the node that this task runs on, in the interpreter of Ray's workers there.

    Raises:
        RuntimeError: it failed, with what it wrote to stderr.
    """
    import os
    import subprocess
    import sys

    variables = {**defaults, **os.environ, **environ}
    done = subprocess.run(
        [sys.executable, *program], env=variables, capture_output=True, timeout=timeout, check=False
    )
    if done.returncode:
        raise RuntimeError(done.stderr.decode("utf-8", "replace"))
    return done.stdout
