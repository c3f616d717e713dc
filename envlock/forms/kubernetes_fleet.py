"""An indexed job of Kubernetes that runs in all pods or in none, and a policy that admits only the
locked image. Pure.

Sources: https://kubernetes.io/docs/concepts/workloads/controllers/job/#completion-mode
https://kubernetes.io/docs/reference/access-authn-authz/validating-admission-policy/
"""

from __future__ import annotations

from collections.abc import Mapping

from envlock.containers.plan import NAMESPACE
from envlock.forms.deployment import Deployment, describe_deployment, format_yaml
from envlock.forms.kubernetes import build_container, build_job, build_pod
from envlock.lock.models import Lockfile
from envlock.packages.licenses import License

PODS = 2
SHARED = "/fleet"
COMMAND = ("python", "train.py")
UID = "metadata.labels['batch.kubernetes.io/controller-uid']"
"""A label that Kubernetes sets; it is unique for each job."""

REMARKS = [
    "Change the number of pods in `completions`, `parallelism` and ENVLOCK_FLEET_SIZE, the claim `fleet`, which all",
    "nodes must be able to write (ReadWriteMany), and the command that follows `--` in `args`.",
    "The entrypoint of the image verifies; then every pod waits for all others, and all become the command or none.",
    "The policy admits a job with the annotation of this lockfile only with the image that was built from it.",
    "It was validated by Kubernetes' published schemas; its expressions were not run on a cluster.",
]


def render(lock: Lockfile, licenses: Mapping[str, License]) -> str:
    """Return the manifests of a job, and of a policy and its binding.

    Raises:
        UsageError: the image is not in a registry.
    """
    deployment = describe_deployment(lock)
    job = _build_job(deployment)
    return format_yaml(REMARKS, job, _build_policy(deployment), _build_binding(deployment))


def _build_job(deployment: Deployment) -> dict[str, object]:
    container = build_container(deployment, [{"name": "fleet", "mountPath": SHARED}])
    container["args"] = [
        *(deployment.entrypoint[0], "-m", "envlock", "fleet", "run", "--to", SHARED, "--"),
        *COMMAND,
    ]
    container["env"] = [
        {"name": "ENVLOCK_FLEET_SIZE", "value": str(PODS)},
        {"name": "ENVLOCK_FLEET_JOB", "valueFrom": {"fieldRef": {"fieldPath": UID}}},
        {"name": "ENVLOCK_FLEET_NODE", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}},
    ]
    fleet = {"name": "fleet", "persistentVolumeClaim": {"claimName": "fleet"}}
    pod = build_pod(deployment, container, [fleet])
    spec = {"completionMode": "Indexed", "completions": PODS, "parallelism": PODS}
    return build_job(deployment, spec, pod)


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
