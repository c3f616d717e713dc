"""What deploys an image: golden files, held to the schemas that the formats' owners publish."""

from __future__ import annotations

import json
from functools import cache
from importlib import import_module, resources
from pathlib import Path
from typing import Any

import jsonschema
import kubernetes_validate
import pytest
import yaml

from envlock.forms import FORMS
from envlock.runtime.errors import LockfileError, UsageError
from tests.containers.plans import lock, model
from tests.containers.test_injection import HOSTILE, put, strings
from tests.forms.pushed import REFERENCE, pushed

GOLDEN = Path(__file__).resolve().parents[1] / "golden"
FILES = {"compose": "compose.yaml", "devcontainer": "devcontainer.json", "kubernetes": "kubernetes.yaml"}
FILES["kubernetes-fleet"] = "kubernetes-fleet.yaml"


def render(form: str, held: dict[str, Any]) -> str:
    """Return a form of a lock."""
    text: str = import_module(FORMS[form]).render(model(held), {})
    return text


def parsed(form: str, held: dict[str, Any]) -> dict[str, Any]:
    """Return what a reader of the format finds, which its published schema allows."""
    text = render(form, held)
    assert text.isascii()
    found = loaded(text)
    if form == "compose":
        jsonschema.validate(found, _compose())
    if form == "kubernetes":
        kubernetes_validate.validate(found, "1.31", strict=True)
    if form == "kubernetes-fleet":
        for each in found["documents"]:
            kubernetes_validate.validate(each, "1.31", strict=True)
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
    assert render(form, pushed()) == (GOLDEN / FILES[form]).read_text(encoding="utf-8")
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


def test_the_schemas_would_say_so() -> None:
    service = parsed("compose", pushed())
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({"services": {"train": {**service["services"]["train"], "shm": 1}}}, _compose())
    job = parsed("kubernetes", pushed())
    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate({**job, "spec": {**job["spec"], "backoffLimit": "none"}}, "1.31", strict=True)


@pytest.mark.parametrize("form", FILES)
def test_an_image_in_no_registry_is_told(form: str) -> None:
    with pytest.raises(UsageError) as raised:
        render(form, lock())
    assert str(raised.value) == (
        "the lockfile names no image in a registry\n"
        "hint: run `envlock build --tag registry/name:tag --push` to push one"
    )


PLACES = [path for path in sorted(set(strings(pushed())), key=str) if path[0] in ("image", "base_image", "project")]
PLACES += [("facts", "gpu", "devices", "0", "name"), ("facts", "gpu", "devices", "1", "name")]


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
                found = loaded(render(form, held))
            except LockfileError:
                continue
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
    job, policy, binding = parsed("kubernetes-fleet", pushed())["documents"]
    (container,) = job["spec"]["template"]["spec"]["containers"]
    environ = {each["name"]: each for each in container["env"]}
    assert job["spec"]["completionMode"] == "Indexed"
    assert int(environ["ENVLOCK_FLEET_SIZE"]["value"]) == job["spec"]["completions"] == job["spec"]["parallelism"]
    assert "command" not in container, "it would replace the entrypoint, which verifies"
    (same,) = policy["spec"]["matchConditions"]
    assert job["metadata"]["annotations"]["io.github.tf-envlock/lock"] in same["expression"]
    (digest,) = policy["spec"]["validations"]
    assert container["image"].rpartition("@")[2] in digest["expression"]
    assert binding["spec"]["policyName"] == policy["metadata"]["name"]
