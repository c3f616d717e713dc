"""The JSON Schema of the lockfile, made from the models. `tools/generate.py` writes it; a test compares."""

from __future__ import annotations

import json

from envlock.lock.models import SCHEMA_URL, Lockfile


def text() -> str:
    """Return the schema as it is published."""
    schema = Lockfile.model_json_schema(by_alias=True)
    published = {"$schema": "https://json-schema.org/draft/2020-12/schema", "$id": SCHEMA_URL, **schema}
    return json.dumps(published, indent=2, sort_keys=True) + "\n"
