"""What deploys an image: golden files, held to the schemas that the formats' owners publish."""

from __future__ import annotations

import json
import shlex
from functools import cache
from importlib import import_module, resources
from pathlib import Path
from typing import Any

import jsonschema
import kubernetes_validate
import pytest
import yaml

from envlock.fleet.ranks import find_rank
from envlock.image.forms import FORMS
from envlock.runtime.errors import LockfileError, UsageError
from tests.exhaustive import exhaustive
from tests.golden_files import assert_as_golden
from tests.image.forms.pushed import REFERENCE, pushed
from tests.image.plans import lock, model
from tests.image.test_injection import HOSTILE, put, strings

GOLDEN = Path(__file__).resolve().parents[2] / "golden"
FILES = {"compose": "compose.yaml", "devcontainer": "devcontainer.json", "kubernetes": "kubernetes.yaml"}
FILES["kubernetes-fleet"] = "kubernetes-fleet.yaml"
FILES["jobset"] = "jobset.yaml"
FILES["docker-run"] = "docker-run.sh"
CLUSTER = ["kubernetes", "kubernetes-fleet", "jobset"]
MACHINE = ["compose", "devcontainer", "docker-run"]
JOBSET = json.loads(Path(__file__).with_name("jobset.schema.json").read_text(encoding="utf-8"))


def render(form: str, held: dict[str, Any]) -> str:
    """Return a form of a lock."""
    text: str = import_module(FORMS[form]).render(model(held))
    return text


def parsed(form: str, held: dict[str, Any]) -> dict[str, Any]:
    """Return what a reader of the format finds, which its published schema allows."""
    text = render(form, held)
    assert text.isascii()
    if form == "docker-run":
        return {"words": shlex.split(text, comments=True)}
    found = loaded(text)
    if form == "compose":
        jsonschema.validate(found, _compose())
    if form == "kubernetes":
        kubernetes_validate.validate(found, "1.31", strict=True)
    if form == "kubernetes-fleet":
        for each in found["documents"]:
            kubernetes_validate.validate(each, "1.31", strict=True)
    if form == "jobset":
        jobset, *policies = found["documents"]
        jsonschema.validate(jobset, JOBSET)
        (job,) = jobset["spec"]["replicatedJobs"]
        # JobSet makes a job of it, under a name of its own.
        each = {"apiVersion": "batch/v1", "kind": "Job", **job["template"]}
        for document in [each, *policies]:
            kubernetes_validate.validate(document, "1.31", strict=True)
    if form == "devcontainer":
        assert json.loads(text) == found
    return found


def loaded(text: str) -> dict[str, Any]:
    """Return the one document of a text, or all of several."""
    documents = list(yaml.safe_load_all(text))
    one: dict[str, Any] = documents[0]
    return one if len(documents) == 1 else {"documents": documents}


@cache
def _compose() -> Any:
    name = "builtin_schemas/vendor/compose-spec.json"
    return json.loads((resources.files("check_jsonschema") / name).read_text(encoding="utf-8"))


@pytest.mark.parametrize("form", FILES)
def test_golden_files(form: str) -> None:
    assert_as_golden(render(form, pushed()), GOLDEN / FILES[form])
    parsed(form, pushed())


@pytest.mark.parametrize("form", ["compose", "devcontainer", "kubernetes"])
def test_a_lock_that_counts_no_processors_asks_for_none(form: str) -> None:
    held = pushed()
    held["facts"] = {**held["facts"], "gpu": {"devices": {}}, "cpu": {"affinity_count": None}}
    found = json.dumps(parsed(form, held))
    assert [word for word in ("cpu", "gpu", "hostRequirements") if word in found] == []


@pytest.mark.parametrize("form", FILES)
def test_a_lock_without_gpus_asks_for_none(form: str) -> None:
    held = pushed()
    held["facts"] = {**held["facts"], "gpu": {"devices": {}}, "cpu": {"affinity_count": 1}}
    found = json.dumps(parsed(form, held))
    assert "gpu" not in found
    assert REFERENCE in found


@pytest.mark.longer
def test_the_schemas_would_say_so() -> None:
    service = parsed("compose", pushed())
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({"services": {"train": {**service["services"]["train"], "shm": 1}}}, _compose())
    job = parsed("kubernetes", pushed())
    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate({**job, "spec": {**job["spec"], "backoffLimit": "none"}}, "1.31", strict=True)


@pytest.mark.parametrize("form", MACHINE)
def test_one_machine_needs_no_registry(form: str) -> None:
    held = pushed(reference=None)
    text = json.dumps(parsed(form, held))
    assert held["image"]["id"] in text
    if form != "devcontainer":
        assert "never" in text, "nobody else has the image"
    with pytest.raises(UsageError) as raised:
        render(form, {**held, "image": None})
    assert str(raised.value) == ("the lockfile names no image\nhint: run `envlock build` to build and record one")


def list_pods(form: str, held: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the specification of each pod of a form."""
    found = parsed(form, held)
    job = found["documents"][0] if "documents" in found else found
    if form == "jobset":
        return [each["template"]["spec"]["template"]["spec"] for each in job["spec"]["replicatedJobs"]]
    return [job["spec"]["template"]["spec"]]


OWN = {"files": {}, "workdir": "/app", "user": "1000:1000", "command": [], "environ": {}}

VOLUMES = {
    *("configMap", "csi", "downwardAPI", "emptyDir", "ephemeral", "persistentVolumeClaim", "projected"),
    "secret",
}
"""Those that `restricted` allows."""


@pytest.mark.parametrize("form", CLUSTER)
def test_pods_are_admitted_under_restricted(form: str) -> None:
    """The controls of https://kubernetes.io/docs/concepts/security/pod-security-standards/, one after the other."""
    for pod in list_pods(form, pushed()):
        assert not {"hostNetwork", "hostPID", "hostIPC", "initContainers", "ephemeralContainers"} & pod.keys()
        assert all(set(volume) - {"name"} <= VOLUMES for volume in pod["volumes"])
        assert pod["automountServiceAccountToken"] is False, "beyond the standard: a training asks the cluster nothing"
        assert pod["securityContext"]["runAsNonRoot"] is True
        assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
        assert not {"runAsUser", "seLinuxOptions", "sysctls", "appArmorProfile"} & pod["securityContext"].keys()
        for container in pod["containers"]:
            context = container["securityContext"]
            assert context["allowPrivilegeEscalation"] is False
            assert context["capabilities"] == {"drop": ["ALL"]}
            assert not {"privileged", "procMount", "runAsUser", "seLinuxOptions"} & context.keys()
            assert not any("hostPort" in port for port in container.get("ports", []))
            assert context["readOnlyRootFilesystem"] is True, "beyond the standard"


@pytest.mark.parametrize("form", CLUSTER)
def test_a_program_can_write_where_it_has_no_code(form: str) -> None:
    shared = ["/dev/shm", "/tmp"]
    code = {"train.py": "00" * 32}
    for files, workdir, expected in (
        (code, "/app", [*shared, "/home/user"]),
        (code, "/home/user", shared),
        ({}, "/home/user", [*shared, "/home/user"]),
    ):
        (pod,) = list_pods(form, pushed(container={**OWN, "files": files, "workdir": workdir}))
        mounts = [mount["mountPath"] for mount in pod["containers"][0]["volumeMounts"]]
        assert [mount for mount in mounts if mount != "/fleet"] == expected


@pytest.mark.parametrize("form", CLUSTER)
def test_a_private_registry_has_a_secret(form: str) -> None:
    (pod,) = list_pods(form, pushed())
    assert pod["imagePullSecrets"] == [{"name": "ghcr-io"}]
    assert "kubectl create secret docker-registry ghcr-io --docker-server=ghcr.io " in render(form, pushed())


@pytest.mark.parametrize("form", ["kubernetes-fleet", "jobset"])
@pytest.mark.parametrize(
    ("command", "expected"),
    [(["python3", "main.py"], ["python3", "main.py"]), ([], ["/opt/venv/bin/python", "train.py"])],
)
def test_the_pods_run_the_recorded_command(form: str, command: list[str], expected: list[str]) -> None:
    (pod,) = list_pods(form, pushed(container={**OWN, "command": command}))
    args = pod["containers"][0]["args"]
    assert args[args.index("--") + 1 :] == expected


@pytest.mark.parametrize("form", CLUSTER)
def test_an_image_in_no_registry_is_told(form: str) -> None:
    with pytest.raises(UsageError) as raised:
        render(form, lock())
    assert str(raised.value) == (
        "the lockfile names no image in a registry\n"
        "hint: run `envlock build --tag registry/name:tag --push` to push one"
    )


PLACES = [path for path in sorted(set(strings(pushed())), key=str) if path[0] in ("image", "base_image", "project")]
PLACES += [("facts", "gpu", "devices", "0", "name"), ("facts", "gpu", "devices", "1", "name")]


@exhaustive
@pytest.mark.slow
@pytest.mark.parametrize("form", FILES)
def test_a_hostile_value_is_a_value_and_nothing_else(form: str) -> None:
    expected = parsed(form, pushed())
    taken = 0
    for path in PLACES:
        for value in HOSTILE[::4]:
            held = put(pushed(), path, value)
            if path[0] == "facts":
                held = put(held, ("facts", "gpu", "devices", "1" if path[3] == "0" else "0", "name"), value)
            try:
                text = render(form, held)
            except LockfileError:
                continue
            found = {"words": shlex.split(text, comments=True)} if form == "docker-run" else loaded(text)
            assert shape(found) == shape(expected) or path[0] == "facts", (path, value)
            assert "HOSTILE" not in json.dumps(found), (path, value)
            taken += 1
    assert taken > 3


def shape(node: Any) -> Any:
    """Return a document without its values."""
    if isinstance(node, dict):
        return {key: shape(value) for key, value in node.items()}
    return [shape(each) for each in node] if isinstance(node, list) else type(node)


def test_pods_of_a_fleet_meet_those_of_their_own_job() -> None:
    job, service, policy, binding = parsed("kubernetes-fleet", pushed())["documents"]
    check_pods(job["spec"], [f"train-{index}.train:2222" for index in range(2)])
    assert job["spec"]["template"]["spec"]["subdomain"] == service["metadata"]["name"]
    assert service["spec"]["selector"] == {"batch.kubernetes.io/job-name": job["metadata"]["name"]}
    check_policy(job, policy, binding)


def test_pods_of_a_jobset_meet_those_of_their_own_job() -> None:
    jobset, policy, binding = parsed("jobset", pushed())["documents"]
    (job,) = jobset["spec"]["replicatedJobs"]
    check_pods(job["template"]["spec"], [f"train-worker-0-{index}.train:2222" for index in range(2)])
    assert jobset["spec"]["network"]["subdomain"] == "train"
    assert jobset["spec"]["failurePolicy"] == {"maxRestarts": 0}
    check_policy(job["template"], policy, binding)


def test_the_schema_of_jobset_would_say_so() -> None:
    jobset = parsed("jobset", pushed())["documents"][0]
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({**jobset, "spec": {**jobset["spec"], "failurePolicy": {"restarts": 0}}}, JOBSET)


def check_pods(spec: dict[str, Any], hosts: list[str]) -> None:
    """Hold the pods of an indexed job to what `assert_fleet()` and TensorFlow read from their variables."""
    pod = spec["template"]["spec"]
    (container,) = pod["containers"]
    environ = {each["name"]: each for each in container["env"]}
    assert spec["completionMode"] == "Indexed"
    assert int(environ["ENVLOCK_FLEET_SIZE"]["value"]) == spec["completions"] == spec["parallelism"]
    assert "command" not in container, "it would replace the entrypoint, which verifies"
    assert "--timeout" in container["args"]
    context = pod["securityContext"]
    assert (context["fsGroup"], context["fsGroupChangePolicy"]) == (1000, "OnRootMismatch")
    names = list(environ)
    assert names.index("ENVLOCK_FLEET_RANK") < names.index("TF_CONFIG"), "Kubernetes expands what stands before"
    for index in range(spec["completions"]):
        tf_config = environ["TF_CONFIG"]["value"].replace("$(ENVLOCK_FLEET_RANK)", str(index))
        variables = {
            "TF_CONFIG": tf_config,
            "JOB_COMPLETION_INDEX": str(index),
            "ENVLOCK_FLEET_RANK": str(index),
            "ENVLOCK_FLEET_SIZE": environ["ENVLOCK_FLEET_SIZE"]["value"],
            "ENVLOCK_FLEET_JOB": "f00d",
        }
        assert json.loads(tf_config)["cluster"]["worker"] == hosts
        rank = find_rank(variables, "host")
        assert (rank.rank, rank.size, rank.job) == (index, len(hosts), "f00d")


def check_policy(job: dict[str, Any], policy: dict[str, Any], binding: dict[str, Any]) -> None:
    """Hold a policy to the annotation and the image of a job."""
    (same,) = policy["spec"]["matchConditions"]
    assert job["metadata"]["annotations"]["io.github.tf-envlock/lock"] in same["expression"]
    (digest,) = policy["spec"]["validations"]
    (container,) = job["spec"]["template"]["spec"]["containers"]
    assert container["image"].rpartition("@")[2] in digest["expression"]
    assert binding["spec"]["policyName"] == policy["metadata"]["name"]


def test_without_a_count_of_processors_docker_chooses() -> None:
    held = pushed()
    held["facts"] = {**held["facts"], "cpu": None}
    assert "--cpuset-cpus" not in render("docker-run", held)
