"""The JSON Schema of `[tool.envlock]`, from what the settings are parsed by."""

from __future__ import annotations

import json
from typing import Any

from envlock.data.runtime_tables import load_policy_table
from envlock.lock.models import SCHEMA_URL
from envlock.lock.settings import CONTAINER_KEYS, DATA_PATH, LINT_KEYS, PER_FILE
from envlock.runtime.comparison_rules import RULES

TEXT = {"type": "string"}
TEXTS = {"type": "array", "items": TEXT}
TABLE = {"type": "object", "additionalProperties": False}
TYPES: dict[str, Any] = {
    "workdir": TEXT,
    "user": TEXT,
    "environ": {"type": "object", "additionalProperties": TEXT},
}
"""Of `container`; the others are lists."""


def render() -> str:
    """Return the schema in its published form; draft 7, which SchemaStore asks for."""
    policies = {"enum": list(load_policy_table().policies)}
    lint = {
        **dict.fromkeys(LINT_KEYS, TEXTS),
        PER_FILE: {"type": "object", "additionalProperties": TEXTS},
    }
    data = {"type": "string", "pattern": f"^{DATA_PATH.pattern}$"}
    settings = {
        "lock": {**TEXT, "description": "the lockfile, relative to this pyproject.toml"},
        "policy": {
            "description": "a policy by name, or a table with its name and rules by path pattern",
            "anyOf": [
                policies,
                {"allOf": [{"$ref": "#/definitions/rules"}], "properties": {"name": policies}},
            ],
        },
        "entry": {**TEXTS, "description": "files and modules of the project that are run"},
        "data": {"type": "array", "items": data, "description": "input files and folders"},
        "lint": {**TABLE, "properties": lint},
        "container": {
            **TABLE,
            "properties": {name: TYPES.get(name, TEXTS) for name in CONTAINER_KEYS},
        },
    }
    # TOML makes tables of an unquoted `cpu.flags`.
    rules = {"anyOf": [{"enum": sorted(RULES)}, {"$ref": "#/definitions/rules"}]}
    schema = {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "$id": SCHEMA_URL.replace("lockfile", "settings"),
        "title": "[tool.envlock]",
        **TABLE,
        "properties": settings,
        "definitions": {
            "rules": {
                "type": "object",
                "properties": {"name": TEXT},
                "additionalProperties": rules,
            }
        },
    }
    return json.dumps(schema, indent=2) + "\n"
