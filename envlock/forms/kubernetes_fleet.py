"""An indexed job of Kubernetes, in all pods or in none, and a policy that admits only the locked image. Pure.

Sources: https://kubernetes.io/docs/concepts/workloads/controllers/job/#completion-mode
https://kubernetes.io/docs/reference/access-authn-authz/validating-admission-policy/
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from envlock.containers.plan import NAMESPACE
from envlock.forms import kubernetes
from envlock.forms.deployment import Deployment, deployment, yaml_text
from envlock.lock.models import Lockfile
from envlock.packages.licenses import License

PODS = 2
SHARED = "/fleet"
COMMAND = ("python", "train.py")

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
        UsageError: the image is in no registry.
    """
    made = deployment(lock)
    job = kubernetes.job(made)
    spec, pod = job["spec"], job["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    container["args"] = [
        *(made.entrypoint[0], "-m", "envlock", "fleet", "run", "--to", SHARED, "--"),
        *COMMAND,
    ]
    container["env"] = [
        {"name": "ENVLOCK_FLEET_SIZE", "value": str(PODS)},
        {"name": "ENVLOCK_FLEET_JOB", "valueFrom": {"fieldRef": {"fieldPath": UID}}},
        {"name": "ENVLOCK_FLEET_NODE", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}},
    ]
    container["volumeMounts"].append({"name": "fleet", "mountPath": SHARED})
    pod["volumes"].append({"name": "fleet", "persistentVolumeClaim": {"claimName": "fleet"}})
    job["spec"] = {"completionMode": "Indexed", "completions": PODS, "parallelism": PODS, **spec}
    return yaml_text(REMARKS, job, _policy(made), _binding(made))


UID = "metadata.labels['batch.kubernetes.io/controller-uid']"
"""A label that Kubernetes sets; no other job has its value."""


def _policy(made: Deployment) -> dict[str, Any]:
    annotation = f"{NAMESPACE}/lock"
    held = f"has(object.metadata.annotations) && '{annotation}' in object.metadata.annotations"
    same = f"object.metadata.annotations['{annotation}'] == 'sha256:{made.lock}'"
    digest = made.image.rpartition("@")[2]
    images = f"object.spec.template.spec.containers.all(each, each.image.endsWith('@{digest}'))"
    message = f"the image of this job is not the one that was built from the lockfile sha256:{made.lock[:12]}"
    jobs = {
        "apiGroups": ["batch"],
        "apiVersions": ["v1"],
        "operations": ["CREATE", "UPDATE"],
        "resources": ["jobs"],
    }
    spec = {
        "failurePolicy": "Fail",
        "matchConstraints": {"resourceRules": [jobs]},
        "matchConditions": [{"name": "of-this-lockfile", "expression": f"{held} && {same}"}],
        "validations": [{"expression": images, "message": message}],
    }
    return _admission("ValidatingAdmissionPolicy", made, spec)


def _binding(made: Deployment) -> dict[str, Any]:
    spec = {"policyName": f"{made.name}.envlock", "validationActions": ["Deny"]}
    return _admission("ValidatingAdmissionPolicyBinding", made, spec)


def _admission(kind: str, made: Deployment, spec: dict[str, Any]) -> dict[str, Any]:
    version, metadata = "admissionregistration.k8s.io/v1", {"name": f"{made.name}.envlock"}
    return {"apiVersion": version, "kind": kind, "metadata": metadata, "spec": spec}
