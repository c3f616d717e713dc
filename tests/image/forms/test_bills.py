"""The bill of materials and the provenance: golden files, read by the libraries of those who defined the formats."""

from __future__ import annotations

import json
import re
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator
from google.protobuf.json_format import ParseDict
from in_toto_attestation.predicates.provenance.v1.provenance_pb2 import Provenance
from in_toto_attestation.v1.resource_descriptor import ResourceDescriptor
from in_toto_attestation.v1.statement import Statement
from in_toto_attestation.v1.statement_pb2 import Statement as StatementMessage
from packageurl import PackageURL

from envlock.image.forms import cyclonedx, slsa
from envlock.lock.models import Lockfile
from envlock.packages.public_index import PUBLIC_INDEX
from envlock.runtime.errors import LockfileError, UsageError
from tests.golden_files import assert_as_golden
from tests.image.forms.pushed import pushed
from tests.image.plans import model
from tests.image.test_injection import HOSTILE, put, strings

GOLDEN = Path(__file__).resolve().parents[2] / "golden"


@cache
def _validator() -> JsonStrictValidator:
    return JsonStrictValidator(SchemaVersion.V1_6)


def bill(lock: Lockfile) -> dict[str, Any]:
    """Return a bill of materials that CycloneDX's own validator takes."""
    text = cyclonedx.render(lock)
    assert _validator().validate_str(text) is None
    assert text.isascii()
    found: dict[str, Any] = json.loads(text)
    return found


def _version(text: str) -> str:
    """Return a golden text with this version of envlock, which made its serial number."""
    return re.sub(r'"urn:uuid:[0-9a-f-]{36}"', '"urn:uuid:..."', text)


@pytest.mark.parametrize(("form", "name"), [(cyclonedx, "sbom.cdx.json"), (slsa, "provenance.json")])
def test_golden_files_and_the_same_bytes_twice(form: Any, name: str) -> None:
    text = form.render(model(pushed()))
    assert text == form.render(model(json.loads(json.dumps(pushed()))))
    assert_as_golden(_version(text), GOLDEN / name)


def test_the_validator_would_say_so() -> None:
    text = cyclonedx.render(model(pushed()))
    assert _validator().validate_str(text.replace('"SHA-256"', '"SHA-255"')) is not None


def test_every_package_is_in_the_bill_with_its_hash_or_the_reason() -> None:
    lock = model(pushed())
    found = {each["name"]: each for each in bill(lock)["components"] if "package:" in each["bom-ref"]}
    assert found.keys() == (lock.facts.packages or {}).keys()
    assert {name for name, each in found.items() if "hashes" not in each} == {"mine", "tensorflow", "tf-keras"}
    assert found["mine"]["properties"] == [{"name": "envlock:unproven", "value": "it is an editable install"}]


def test_package_urls_are_canonical() -> None:
    held = pushed()
    archive = model({**held, "base_image": {**held["base_image"], "route": "wheels", "python_archive": STANDALONE}})
    components = [*bill(model(held))["components"], *bill(archive)["components"]]
    assert len(components) > 10
    for each in components:
        assert PackageURL.from_string(each["purl"]).to_string() == each["purl"]


def test_a_lock_without_image_and_wheels_has_a_bill_and_no_provenance() -> None:
    kept = {key: value for key, value in pushed().items() if key not in ("image", "base_image", "identity")}
    found = bill(model(kept))
    assert found["metadata"]["component"]["type"] == "application"
    assert {each["type"] for each in found["components"]} == {"library", "platform"}
    for held in (kept, pushed(wheels=None)):
        with pytest.raises(UsageError) as raised:
            slsa.render(model(held))
        assert raised.value.message == "the lockfile does not say how its image was built"
        assert raised.value.hint == "run `envlock build` to build and record one"


def test_of_what_a_lock_does_not_know_the_bill_says_nothing() -> None:
    held = pushed()
    own = {"file": "/usr/lib/libcudnn.so.9", "version": "9.1.0"}
    cuda = {"cudnn": own, "cublas": {"version": "12.5.3", "wheel_version": "12.5.3"}, "cufft": {"linkage": "absent"}}
    facts = {**held["facts"], "python": None, "packages": {"unknown": {}}, "cuda": cuda}
    components = {each["name"]: each for each in bill(model({**held, "facts": facts, "identity": None}))["components"]}
    assert {"cpython", "cublas", "cufft"} & components.keys() == set()
    assert "version" not in components["unknown"]
    assert components["unknown"]["purl"] == "pkg:pypi/unknown"
    assert (components["cudnn"]["supplier"], components["cudnn"]["version"]) == ({"name": "NVIDIA"}, "9.1.0")
    nameless = {**facts, "python": {"version": "3.11.7"}}
    found = bill(model({**held, "facts": nameless, "identity": None}))["components"]
    assert [each["name"] for each in found if each["type"] == "platform"] == ["python"]


def test_an_index_is_named_in_a_package_url_where_it_is_not_the_usual_one() -> None:
    held = pushed()
    held["identity"]["packages"]["numpy"]["wheel"]["index"] = PUBLIC_INDEX
    urls = {each["name"]: PackageURL.from_string(each["purl"]) for each in bill(model(held))["components"]}
    indexes = {name: dict(urls[name].qualifiers).get("repository_url") for name in ("keras", "numpy")}
    assert indexes == {"keras": "https://example.org/simple", "numpy": None}


ARCHIVE = "cpython-3.11.13+20250612-x86_64-unknown-linux-gnu-install_only_stripped.tar.gz"
IMAGE = {"name": "docker.io/library/python", "tag": "3.11", "digest": f"sha256:{'e1' * 32}", "manifest": None}


@pytest.mark.parametrize("python", [{"python": IMAGE}, {"python_archive": {"file": ARCHIVE, "sha256": "e1" * 32}}])
def test_where_the_python_of_an_image_comes_from_is_a_material(python: dict[str, Any]) -> None:
    held = pushed()
    held["base_image"] |= {**python, "route": "cuda"}
    document = json.loads(slsa.render(model(held)))
    materials = document["predicate"]["buildDefinition"]["resolvedDependencies"]
    assert [each["digest"]["sha256"] for each in materials[:2]] == ["c8" * 32, "e1" * 32]


def test_a_wheel_of_the_image_that_the_lock_has_lost_is_named() -> None:
    with pytest.raises(UsageError) as raised:
        slsa.render(model(pushed(wheels=["keras", "scipy"])))
    assert raised.value.message == "the lockfile does not have the wheel of scipy, which is in its image"
    assert raised.value.hint == "run `envlock build` again"


@pytest.mark.parametrize("reference", [pushed()["image"]["reference"], None])
def test_the_provenance_is_read_by_a_foreign_verifier(reference: str | None) -> None:
    document = json.loads(slsa.render(model(pushed(reference=reference))))
    statement = Statement.copy_from_pb(ParseDict(document, StatementMessage()))
    statement.validate()
    predicate = ParseDict(document["predicate"], Provenance())  # which refuses an unknown field
    for each in predicate.build_definition.resolved_dependencies:
        ResourceDescriptor.copy_from_pb(each).validate()
    assert statement.pb.subject[0].name == ("ghcr.io/team/train" if reference else "image-config")
    materials = {each.name: each.digest["sha256"] for each in predicate.build_definition.resolved_dependencies}
    assert (materials["envlock.lock"], materials["nvcr.io/nvidia/tensorflow"]) == ("ab" * 32, "c8" * 32)
    assert len(materials) == 6
    assert predicate.run_details.builder.version["envlock"] == "0.1.0"


STANDALONE = {"file": "cpython-3.11.7+20240107-x86_64-unknown-linux-gnu-install_only.tar.gz", "sha256": "5a" * 32}
URL = f"https://github.com/astral-sh/python-build-standalone/releases/download/20240107/{STANDALONE['file']}"


def test_a_standalone_python_is_in_the_bill_and_the_provenance_by_its_hash() -> None:
    held = pushed()
    lock = model({**held, "base_image": {**held["base_image"], "route": "wheels", "python_archive": STANDALONE}})
    (found,) = [each for each in bill(lock)["components"] if each["bom-ref"] == "python-archive"]
    url = URL.replace("+", "%2B")
    read = PackageURL.from_string(found.pop("purl"))
    assert read == PackageURL("generic", None, "cpython", "3.11.7+20240107", {"download_url": url})
    assert found == {
        "type": "file",
        "bom-ref": "python-archive",
        "name": STANDALONE["file"],
        "version": "3.11.7+20240107",
        "hashes": [{"alg": "SHA-256", "content": STANDALONE["sha256"]}],
        "externalReferences": [{"type": "distribution", "url": url}],
    }
    materials = json.loads(slsa.render(lock))["predicate"]["buildDefinition"]["resolvedDependencies"]
    assert {"name": STANDALONE["file"], "uri": url, "digest": {"sha256": STANDALONE["sha256"]}} in materials


HELD = pushed()
PATHS = sorted(set(strings(HELD["facts"]["packages"])), key=str)


def test_a_hostile_package_is_a_value_and_nothing_else() -> None:
    taken = 0
    for path in PATHS:
        for value in HOSTILE[::3]:
            held = put(HELD, ("facts", "packages", *path), value)
            try:
                lock = model(held)
            except LockfileError:
                continue
            found = json.loads(cyclonedx.render(lock))
            packages = [each for each in found["components"] if "package:" in each["bom-ref"]]
            assert len(packages) == 5
            for each in packages:
                read = PackageURL.from_string(each["purl"])
                assert (read.type, read.name, read.version) == ("pypi", each["name"], each.get("version"))
            taken += 1
    assert taken > 10
