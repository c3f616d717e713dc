"""An indexed job of Kubernetes that runs in all pods or in none, and a policy that admits only the
locked image. Pure.

Sources: https://kubernetes.io/docs/concepts/workloads/controllers/job/#completion-mode
https://kubernetes.io/docs/reference/access-authn-authz/validating-admission-policy/
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from envlock.image.forms.deployment import Deployment, describe_deployment, format_yaml
from envlock.image.forms.kubernetes import (
    POD_SECURITY,
    SECURITY,
    build_container,
    build_job,
    build_pod,
    describe_pull_secret,
)
from envlock.image.plan import NAMESPACE
from envlock.lock.models import Lockfile

PODS = 2  # the fewest that show a job of several; the manifest is edited for more
SHARED = "/fleet"
PROGRAM = "train.py"
"""What the pods run if the image was built without a command; the manifest is edited for another."""
PORT = 2222
"""Of TensorFlow's own servers; the one of TensorFlow's examples."""
WAIT_SECONDS = 1800
"""How long a pod waits for the others. Pods start minutes apart where one node has to pull an image
of 10 GB and another one has it; the command line's 120 s are those of launchers that start all
ranks at once.
"""
GROUP = 1000
"""Group of the volume, which Kubernetes gives the pod's processes too: the user of an image that
envlock built is 1000, and a new volume belongs to root.
https://kubernetes.io/docs/tasks/configure-pod-container/security-context/
"""
UID = "metadata.labels['batch.kubernetes.io/controller-uid']"
"""A label that Kubernetes sets; no other job has its value."""
INDEX = "metadata.annotations['batch.kubernetes.io/job-completion-index']"
"""An annotation that Kubernetes sets: the number of the pod. Its variable JOB_COMPLETION_INDEX
comes after those of a manifest, which therefore cannot refer to it.
https://kubernetes.io/docs/tasks/inject-data-application/define-interdependent-environment-variables/
"""

REMARKS = [
    "Change the number of pods in `completions`, `parallelism`, ENVLOCK_FLEET_SIZE and the workers of TF_CONFIG, the claim",
    "`fleet`, which all nodes must be able to write (ReadWriteMany), and the command that follows `--` in `args`.",
    "The entrypoint of the image verifies; then every pod waits for all others, and all become the command or none.",
    "The service gives each pod the name that TF_CONFIG has; remove both where the command does not need them.",
    "The policy admits a job with the annotation of this lockfile only with the image that was built from it.",
    "It was validated by Kubernetes' published schemas; its expressions were not run on a cluster.",
]


def render(lock: Lockfile) -> str:
    """Return the manifests of a job, its service, and of a policy and its binding.

    Raises:
        UsageError: the image is not in a registry.
    """
    deployment = describe_deployment(lock)
    # The control plane names the pod of an indexed job after job and index, below the service.
    hosts = [f"{deployment.name}-{index}.{deployment.name}" for index in range(PODS)]
    pod = build_fleet_pod(deployment, hosts)
    pod["subdomain"] = deployment.name
    job = build_job(deployment, build_indexed_spec(), pod)
    policies = build_policies(deployment)
    remarks = [*REMARKS, *SECURITY, *describe_pull_secret(deployment)]
    return format_yaml(remarks, job, _build_service(deployment), *policies)


def build_indexed_spec() -> dict[str, object]:
    """Return what makes a job one of numbered pods, as values."""
    return {"completionMode": "Indexed", "completions": PODS, "parallelism": PODS}


def build_fleet_pod(deployment: Deployment, hosts: Sequence[str]) -> dict[str, object]:
    """Return the specification of each pod of a job, as values.

    Args:
        deployment: the image and its surroundings.
        hosts: the names under which the pods find one another, by their numbers.
    """
    container = build_container(deployment, [{"name": "fleet", "mountPath": SHARED}])
    check = ("-m", "envlock", "fleet", "run", "--to", SHARED, "--timeout", str(WAIT_SECONDS), "--")
    command = deployment.command or (deployment.entrypoint[0], PROGRAM)
    container["args"] = [deployment.entrypoint[0], *check, *command]
    workers = ", ".join(f'"{host}:{PORT}"' for host in hosts)
    task = '{"type": "worker", "index": $(ENVLOCK_FLEET_RANK)}'
    container["env"] = [
        {"name": "ENVLOCK_FLEET_SIZE", "value": str(PODS)},
        _build_reference("ENVLOCK_FLEET_RANK", INDEX),
        _build_reference("ENVLOCK_FLEET_JOB", UID),
        _build_reference("ENVLOCK_FLEET_NODE", "spec.nodeName"),
        # After the variable that it refers to.
        {
            "name": "TF_CONFIG",
            "value": f'{{"cluster": {{"worker": [{workers}]}}, "task": {task}}}',
        },
    ]
    fleet = {"name": "fleet", "persistentVolumeClaim": {"claimName": "fleet"}}
    pod = build_pod(deployment, container, [fleet])
    pod["securityContext"] = {
        **POD_SECURITY,
        "fsGroup": GROUP,
        "fsGroupChangePolicy": "OnRootMismatch",
    }
    return pod


def _build_reference(name: str, path: str) -> dict[str, object]:
    """Return a variable that has the value of a field of the pod."""
    return {"name": name, "valueFrom": {"fieldRef": {"fieldPath": path}}}


def _build_service(deployment: Deployment) -> dict[str, object]:
    """Return the service without an address of its own, which gives each pod of the job a name.

    https://kubernetes.io/docs/tasks/job/job-with-pod-to-pod-communication/
    """
    spec = {
        "clusterIP": "None",
        "publishNotReadyAddresses": True,
        "selector": {"batch.kubernetes.io/job-name": deployment.name},
    }
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": deployment.name},
        "spec": spec,
    }


def build_policies(deployment: Deployment) -> tuple[dict[str, object], dict[str, object]]:
    """Return the policy that admits only the locked image, and its binding, as values."""
    return _build_policy(deployment), _build_binding(deployment)


def _build_policy(deployment: Deployment) -> dict[str, object]:
    """Return the policy: a job with the annotation of this lockfile may only use the image that was
    built from it.
    """
    annotation = f"{NAMESPACE}/lock"
    has_annotations = "has(object.metadata.annotations)"
    is_annotated = f"'{annotation}' in object.metadata.annotations"
    is_this_lockfile = f"object.metadata.annotations['{annotation}'] == 'sha256:{deployment.lock}'"
    digest = deployment.image.rpartition("@")[2]
    images = f"object.spec.template.spec.containers.all(each, each.image.endsWith('@{digest}'))"
    condition = " && ".join([has_annotations, is_annotated, is_this_lockfile])
    message = (
        "the image of this job is not the one that was built from the lockfile "
        f"sha256:{deployment.lock[:12]}"
    )
    jobs = {
        "apiGroups": ["batch"],
        "apiVersions": ["v1"],
        "operations": ["CREATE", "UPDATE"],
        "resources": ["jobs"],
    }
    # `Fail`: where an expression cannot be evaluated, a job is refused instead of unchecked.
    spec = {
        "failurePolicy": "Fail",
        "matchConstraints": {"resourceRules": [jobs]},
        "matchConditions": [{"name": "of-this-lockfile", "expression": condition}],
        "validations": [{"expression": images, "message": message}],
    }
    return _build_admission("ValidatingAdmissionPolicy", deployment, spec)


def _build_binding(deployment: Deployment) -> dict[str, object]:
    spec = {"policyName": f"{deployment.name}.envlock", "validationActions": ["Deny"]}
    return _build_admission("ValidatingAdmissionPolicyBinding", deployment, spec)


def _build_admission(
    kind: str, deployment: Deployment, spec: Mapping[str, object]
) -> dict[str, object]:
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": kind,
        "metadata": {"name": f"{deployment.name}.envlock"},
        "spec": spec,
    }
