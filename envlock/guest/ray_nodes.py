"""Run a program of this room on every node of a Ray cluster, as one rank for each node, and store
the output of each.

It runs where Ray is installed, in the interpreter of the environment. Argument: JSON with

    folder, job   where to store the statements; nodes do not have to share the folder
    program       the arguments of an interpreter; the folder of this package must be at the same place on every node
    timeout       seconds to wait for all nodes
    nodes         how many nodes there must be; null: all live nodes
"""

from __future__ import annotations

import json
import os
import subprocess
import sys

from envlock.fleet.folder import Folder
from envlock.fleet.ranks import OWN

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import ModuleType
    from typing import Dict, Iterator, List, Optional, TypedDict

    class Asked(TypedDict):
        folder: str
        job: str
        program: List[str]
        timeout: float
        nodes: Optional[int]


def main() -> None:
    """Store the output of each node; exit with 5 if there is no cluster."""
    asked: Asked = json.loads(sys.argv[1])
    sys.argv[1:] = []
    try:
        # An optional package: if it is missing, the answer is a sentence and an exit code.
        import ray

        ray.init(address="auto", log_to_driver=False, logging_level="ERROR")
    except (ImportError, ConnectionError, RuntimeError, OSError) as error:
        sys.stderr.write("no Ray cluster: {}\n".format(str(error).strip().split("\n")[0]))
        sys.stderr.flush()
        os._exit(5)
    folder = Folder(asked["folder"], asked["job"])
    for output in _run_on_nodes(ray, folder, asked):
        # Only the last line: modules that the program imports can have printed others.
        folder.keep(*json.loads(output.rpartition(b"\n")[2]))
    # Not through Ray's shutdown, which waits for tasks that hang.
    os._exit(0)


def _run_on_nodes(ray: ModuleType, folder: Folder, asked: Asked) -> Iterator[bytes]:
    """Yield the output of each node, except for nodes that are lost or on which the
    program failed.
    """
    # By value, because the workers of the cluster may not have this package.
    ray.cloudpickle.register_pickle_by_value(sys.modules[__name__])
    names = {}
    alive = []
    for node in ray.nodes():
        names[node["NodeID"]] = node.get("NodeName") or node["NodeManagerHostname"]
        if node["Alive"]:
            alive.append(node["NodeID"])
    nodes = folder.peek("nodes") or sorted(alive)
    # The next program of the job has the same ranks.
    folder.post("nodes", nodes)
    size = max(asked["nodes"] or 0, len(nodes))
    task = ray.remote(num_cpus=0, max_retries=0)(run)
    ranks = {}
    strategies = ray.util.scheduling_strategies
    for rank, node in enumerate(nodes):
        strategy = strategies.NodeAffinitySchedulingStrategy(node_id=node, soft=False)
        environ = {OWN["rank"]: str(rank), OWN["size"]: str(size), OWN["job"]: str(asked["job"])}
        result = task.options(scheduling_strategy=strategy).remote(
            asked["program"], {OWN["node"]: names[node]}, environ, asked["timeout"]
        )
        ranks[result] = rank
    ready, _ = ray.wait(list(ranks), num_returns=len(ranks), timeout=asked["timeout"])
    for result in ready:
        rank = ranks[result]
        try:
            yield ray.get(result, timeout=1)
        except Exception as error:  # the error of a node that has died, or of the program
            reason = str(error).strip().splitlines()[-1]
            sys.stderr.write(f"node {names[nodes[rank]]}: {reason}\n")


def run(
    program: List[str], defaults: Dict[str, str], environ: Dict[str, str], timeout: float
) -> bytes:
    """Return the output of a program on the node of this task, in the interpreter of Ray's workers
    there.

    Raises:
        RuntimeError: it failed; the message is its output on stderr.
    """
    variables = {**defaults, **os.environ, **environ}
    done = subprocess.run(
        [sys.executable, *program], env=variables, capture_output=True, timeout=timeout, check=False
    )
    if done.returncode:
        raise RuntimeError(done.stderr.decode("utf-8", "replace"))
    return done.stdout
