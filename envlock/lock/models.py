"""The format, `lock_version` 1. The JSON Schema is made from these models."""

import json
from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field

from envlock.lock.facts import Facts
from envlock.lock.fields import FactPath, PathPattern, Strict, Text, Word
from envlock.lock.identity import Identity
from envlock.lock.image import BaseImage, Image
from envlock.lock.numerics import Numerics

SCHEMA_URL = "https://raw.githubusercontent.com/tf-envlock/envlock/main/envlock/data/lockfile.schema.json"


class UnavailableFact(Strict):
    """Asked, and could not be told."""

    reason: Text
    code: Text


class LockedPolicy(Strict):
    """How closely the facts are to be held: a tier, and this project's exceptions (path pattern -> rule)."""

    name: Word
    overrides: dict[PathPattern, Word]


class Lockfile(Strict):
    """The whole file."""

    model_config = ConfigDict(title="envlock lockfile", populate_by_name=True, serialize_by_alias=True)

    schema_url: Annotated[Text, Field(alias="$schema")] = SCHEMA_URL
    lock_version: Literal[1]
    created_by: Text
    facts: Facts
    unavailable: dict[FactPath, UnavailableFact]
    policy: LockedPolicy
    identity: Identity | None = None
    base_image: BaseImage | None = None
    image: Image | None = None
    numerics: Numerics | None = None

    def to_document(self) -> dict[str, Any]:
        """Return the JSON values of the file; absent facts stay absent, null ones stay null."""
        return {"$schema": self.schema_url, **self.model_dump(mode="json", exclude_unset=True, by_alias=True)}


def text() -> str:
    """Return the schema as it is published."""
    schema = Lockfile.model_json_schema(by_alias=True)
    published = {"$schema": "https://json-schema.org/draft/2020-12/schema", "$id": SCHEMA_URL, **schema}
    return json.dumps(published, indent=2, sort_keys=True) + "\n"
