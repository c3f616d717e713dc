"""Write the bill of materials of our own wheel beside it: `python tools/wheel_bill.py dist/NAME.whl`

CycloneDX 1.6, https://cyclonedx.org/docs/1.6/json/. The same wheel gives the same bytes. Standard library only.
"""

from __future__ import annotations

import hashlib
import json
import re
import sys
import uuid
import zipfile
from email.message import Message
from email.parser import HeaderParser
from pathlib import Path
from typing import Any

WHEEL = "wheel"


def bill(wheel: Path) -> str:
    """Return what a wheel is, and what its extras would bring; it bundles nothing and requires nothing.

    Raises:
        ValueError: the wheel requires a package without an extra.
    """
    metadata = _metadata(wheel)
    name, version = metadata["Name"], metadata["Version"]
    digest = hashlib.sha256(wheel.read_bytes()).hexdigest()
    subject = {
        "type": "library",
        "bom-ref": WHEEL,
        "name": name,
        "version": version,
        "description": metadata["Summary"],
        "hashes": [{"alg": "SHA-256", "content": digest}],
        "licenses": [{"license": {"id": metadata["License-Expression"]}}],
        "purl": f"pkg:pypi/{name}@{version}?file_name={wheel.name}",
    }
    optional = [_optional(text) for text in metadata.get_all("Requires-Dist") or ()]
    document: dict[str, Any] = {
        "$schema": "http://cyclonedx.org/schema/bom-1.6.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "serialNumber": f"urn:uuid:{uuid.uuid5(uuid.NAMESPACE_URL, f'sha256:{digest}')}",
        "version": 1,
        "metadata": {"component": subject},
        "components": sorted(optional, key=lambda each: each["bom-ref"]),
        "dependencies": [{"ref": WHEEL}],
        "compositions": [{"aggregate": "complete", "assemblies": [WHEEL], "dependencies": [WHEEL]}],
    }
    return json.dumps(document, indent=2) + "\n"


def _metadata(wheel: Path) -> Message:
    with zipfile.ZipFile(wheel) as archive:
        (name,) = [each for each in archive.namelist() if each.endswith(".dist-info/METADATA")]
        return HeaderParser().parsestr(archive.read(name).decode("utf-8"))


def _optional(requirement: str) -> dict[str, Any]:
    """Return the component of a requirement that an extra has; which version, the installer decides."""
    found = re.fullmatch(r"([\w.-]+)(\[[\w,-]+\])?([^;]*);.*\bextra == '([\w-]+)'", requirement)
    if found is None:
        raise ValueError(f"required without an extra: {requirement}")
    name, _, versions, extra = found.groups()
    properties = [
        {"name": "envlock:extra", "value": extra},
        {"name": "envlock:versions", "value": versions.strip()},
    ]
    ref, purl = f"{extra}:{name}", f"pkg:pypi/{name.lower()}"
    return {
        "type": "library",
        "bom-ref": ref,
        "name": name,
        "scope": "optional",
        "purl": purl,
        "properties": properties,
    }


if __name__ == "__main__":
    for argument in sys.argv[1:]:
        Path(argument).with_suffix(".cdx.json").write_text(bill(Path(argument)), encoding="utf-8")
