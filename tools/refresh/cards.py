"""NVIDIA's GPUs by name: those of the driver's own list, and of the list of PCI devices where they are older than it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from envlock.image.bases.card_names import simplify_name
from envlock.runtime.errors import OutsideError
from envlock.runtime.release import parse_release
from refresh.rows import Asked, Found, Row
from refresh.web import Web

PRODUCTS = "https://raw.githubusercontent.com/NVIDIA/open-gpu-kernel-modules/main/README.md"
DEVICES = "https://raw.githubusercontent.com/pciutils/pciids/master/pci.ids"
PRODUCT = re.compile(
    r"^\| (\S.*?) +\| ([0-9A-F]{4})(?: [0-9A-F]{4} [0-9A-F]{4})? +\|$", re.MULTILINE
)
SOLD = re.compile(
    r"(GeForce|Quadro|Tesla|GRID|NVS|CMP|TITAN|Jetson|(RTX|GT) (?!\d+$)|[A-Z]{1,2}\d{1,4}[A-Z]?$)"
)
UNSOLD = re.compile(
    r"SKU|USM|vGPU|FAKE|Stella|Processor|IceCube|Service|Sample|NVSwitch|PG\d|GM\d|\d\d\d 9|Core|DGX1"
)
DEVICE = re.compile(r"^\t([0-9a-f]{4})  ([A-Z]{2}[0-9A-F]{3})[A-Z]*(?: / [^\[]+)? \[(.+)\]$")


def ask(web: Web, table: dict[str, Any], day: str) -> Found:
    """Return the cards of cuda_images.toml, a row a chip."""
    products, devices = web.get(PRODUCTS), web.get(DEVICES)
    # A chip that no row has is for a person.
    capabilities = {
        row["chip"]: row["compute_capability"] for row in table["card"] if "chip" in row
    }
    driver, version = (
        re.search(r"version (\d+\.\d+[.\d]*\d)", products),
        re.search(r"^#\tVersion: (\S+)", devices, re.MULTILINE),
    )
    listed = [(name, device.lower()) for name, device in PRODUCT.findall(products)]
    known = {device: (chip, name) for device, chip, name in _list_devices(devices)}
    if driver is None or version is None or not listed or not known:
        raise OutsideError(
            "the lists of NVIDIA's products have another form",
            hint=f"look at {PRODUCTS} and {DEVICES}",
        )
    found = Found(moves_horizon=False)
    names: dict[str, set[str]] = {}
    for name, device in listed:
        chip = known.get(device, ("", ""))[0]
        if chip in capabilities:
            names.setdefault(chip, set()).add(name)
        else:
            found.decide.append(
                f"{name} (PCI ID {device.upper()}): {chip or 'an unlisted chip'}, "
                "whose compute capability has no source here"
            )
    new = frozenset(names)
    told = {
        (simplify_name(name), capabilities[chip]) for chip, each in names.items() for name in each
    }
    for chip, name in sorted(known.values(), key=lambda row: (len(row[1]), row)):
        for part in _split(name) if chip in capabilities else ():
            key = simplify_name(part), capabilities[chip]
            if key[0] and key not in told:
                told.add(key)
                names.setdefault(chip, set()).add(part)
    found.wrong = list(_take_out_moved(names, table, capabilities))
    sources = {
        True: f"products: driver {driver[1]}, and devices: version {version[1]}, asked on {day}",
        False: f"devices: version {version[1]}, asked on {day}",
    }
    rows = [
        {
            "compute_capability": capabilities[chip],
            "chip": chip,
            "names": _join(each, chip, table),
            "source": sources[chip in new],
        }
        for chip, each in names.items()
    ]
    found.lists = [Asked("card", rows, _get_key, _order, "products", grows=("names",))]
    found.decide = sorted(set(found.decide))
    return found


def _list_devices(text: str) -> Iterator[tuple[str, str, str]]:
    """Yield the PCI ID, the chip and the name of each of NVIDIA's devices."""
    _, _, rest = text.partition("\n10de  ")
    for line in rest.split("\n")[1:]:
        if line and not line.startswith(("\t", "#")):
            break
        match = DEVICE.match(line)
        if match is not None:
            yield match[1], match[2], match[3]


def _take_out_moved(
    names: dict[str, set[str]], table: dict[str, Any], capabilities: dict[str, str]
) -> Iterator[str]:
    """Take out the names that rows have at another compute capability, and yield a sentence for each."""
    known: dict[str, set[str]] = {}
    for row in table["card"]:
        for name in row["names"]:
            known.setdefault(name, set()).add(row["compute_capability"])
    for chip, each in names.items():
        for name in sorted(each):
            capability, others = capabilities[chip], sorted(known.get(name, ()))
            if others and capability not in others:
                each.discard(name)
                yield f"card {name}: {' and '.join(others)} by its rows, but {capability} ({chip}) by the lists"


def _split(name: str) -> Iterator[str]:
    """Yield the names in `GeForce GT 620M/630M` or `Tesla C2050 / C2070`; none of samples and boards."""
    start = ""
    for part in map(str.strip, name.split("/")):
        full = start + part if part[:1].isdigit() else part
        if SOLD.match(full) and not UNSOLD.search(full):
            yield full
        if not part[:1].isdigit():
            start = part[: part.rfind(" ") + 1]


def _join(names: set[str], chip: str, table: dict[str, Any]) -> list[str]:
    """Return the names of a chip with those that a row has already: drivers no longer list all."""
    known = [name for row in table["card"] if row.get("chip") == chip for name in row["names"]]
    return sorted({*names, *known})


def _get_key(row: Row) -> tuple[str, ...]:
    """Return the chip; the names of a row that has none, which somebody wrote."""
    return (row["chip"],) if "chip" in row else tuple(row["names"])


def _order(row: Row) -> tuple[tuple[int, ...], str]:
    return parse_release(row["compute_capability"]), row.get("chip", "")
