"""What a lockfile does not have, forms leave out, or say in the general way."""

from __future__ import annotations

import json
from typing import Any

import pytest

from envlock.image.forms import cyclonedx, slsa
from envlock.image.forms.deployment import DEFAULT_NAME, describe_deployment
from envlock.image.forms.purl import build_deb
from envlock.runtime.errors import UsageError
from tests.image.forms.pushed import pushed
from tests.image.plans import model

ARCHIVE = {
    "file": "cpython-3.11.9+20240415-x86_64-unknown-linux-gnu-install_only.tar.gz",
    "sha256": "0a" * 32,
}


def changed(section: str | None = None, **fields: Any) -> dict[str, Any]:
    """Return a lock with other fields in a section, or at the top."""
    held = pushed()
    if section is None:
        return {**held, **fields}
    return {**held, section: {**held[section], **fields}}


def components(held: dict[str, Any]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(cyclonedx.render(model(held)))["components"]
    return found


def test_a_bill_is_named_after_the_project() -> None:
    held = {key: value for key, value in changed(project={"name": "training"}).items() if key != "image"}
    document = json.loads(cyclonedx.render(model(held)))
    assert document["metadata"]["component"]["name"] == "training"


def test_the_image_of_a_python_is_a_part_of_the_bill() -> None:
    python = {"name": "docker.io/library/python", "tag": "3.11-slim", "digest": "sha256:" + "0b" * 32, "manifest": None}
    held = changed("base_image", route="cuda", python=python)
    names = [each["name"] for each in components(held) if each["type"] == "container"]
    assert names == ["nvcr.io/nvidia/tensorflow", "docker.io/library/python"]


def test_debian_packages_of_an_unknown_system_are_debians_and_without_any_none_is_listed() -> None:
    held = changed("facts", system=None)
    debian = [each for each in components(held) if each.get("purl", "").startswith("pkg:deb/debian/")]
    assert len(debian) == len(held["base_image"]["apt"]["packages"]) > 0
    held["base_image"] = {**held["base_image"], "apt": None}
    assert [each for each in components(held) if each.get("purl", "").startswith("pkg:deb/")] == []


def test_a_wheel_of_no_index_has_the_plain_address() -> None:
    held = pushed()
    held["identity"]["packages"]["numpy"]["wheel"]["index"] = None
    (numpy,) = [each for each in components(held) if each["name"] == "numpy"]
    assert "repository_url" not in numpy["purl"]


def test_without_packages_nothing_is_said_to_be_complete() -> None:
    held = changed("facts", packages={})
    document = json.loads(cyclonedx.render(model({**held, "identity": None})))
    assert [each["aggregate"] for each in document["compositions"]] == ["incomplete"]


def test_the_vendor_of_a_debian_package_is_that_of_its_base() -> None:
    assert build_deb("ubuntu", "a", "1", "amd64") == "pkg:deb/ubuntu/a@1?arch=amd64"
    assert build_deb(None, "a", "1", "amd64") == "pkg:deb/debian/a@1?arch=amd64"


def test_a_downloaded_python_is_a_material() -> None:
    held = changed("base_image", route="cuda", python_archive=ARCHIVE, apt=None)
    document = json.loads(slsa.render(model(held)))
    materials = document["predicate"]["buildDefinition"]["resolvedDependencies"]
    assert [each["digest"]["sha256"] for each in materials if each.get("name") == ARCHIVE["file"]] == ["0a" * 32]


def test_a_wheel_of_an_image_that_nothing_proves_is_refused() -> None:
    with pytest.raises(UsageError, match=r"^the lockfile does not have the wheel of keras, which is in its image\n"):
        slsa.render(model({**pushed(), "identity": None}))


def test_a_deployment_of_a_machine_that_is_not_known() -> None:
    found = describe_deployment(model(changed("facts", gpu=None, cpu=None)))
    assert (found.gpus, found.gpu_model, found.cpus) == (0, None, None)


def test_a_base_with_everything_runs_its_own_python() -> None:
    assert describe_deployment(model(pushed(wheels=[]))).entrypoint[0] == "python3"


@pytest.mark.parametrize(
    ("project", "name"),
    [({"name": "my-training"}, "my-training"), ({"name": "a" * 80}, DEFAULT_NAME), ({}, DEFAULT_NAME)],
)
def test_the_name_of_a_deployment(project: dict[str, Any], name: str) -> None:
    assert describe_deployment(model(changed(project=project))).name == name
