"""NVIDIA's GPUs by name: those of the driver's own list, and of the list of PCI devices where they are older than it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from envlock.images.card_names import simplify_name
from envlock.runtime.errors import OutsideError
from envlock.runtime.release import parse_release
from refresh.found import Found
from refresh.rows import Asked, Row
from refresh.web import Web

PRODUCTS = "https://raw.githubusercontent.com/NVIDIA/open-gpu-kernel-modules/main/README.md"
DEVICES = "https://raw.githubusercontent.com/pciutils/pciids/master/pci.ids"
CHIPS = {
    "2.0": ["GF100", "GF110"],
    "2.1": ["GF104", "GF106", "GF108", "GF114", "GF116", "GF117", "GF119"],
    "3.0": ["GK104", "GK106", "GK107"],
    "3.5": ["GK110", "GK180", "GK208"],
    "3.7": ["GK210"],
    "5.0": ["GM107", "GM108"],
    "5.2": ["GM200", "GM204", "GM206"],
    "6.0": ["GP100"],
    "6.1": ["GP102", "GP104", "GP106", "GP107", "GP108"],
    "7.0": ["GV100"],
    "7.5": ["TU102", "TU104", "TU106", "TU116", "TU117"],
    "8.0": ["GA100"],
    "8.6": ["GA102", "GA103", "GA104", "GA106", "GA107"],
    "8.9": ["AD102", "AD103", "AD104", "AD106", "AD107"],
    "9.0": ["GH100"],
    "10.0": ["GB100", "GB102"],
    "10.3": ["GB110"],
    "12.0": ["GB202", "GB203", "GB205", "GB206", "GB207"],
    "12.1": ["GB20B"],
}
"""Source: https://gitlab.freedesktop.org/mesa/mesa, src/nouveau/winsys/nouveau_device.c, sm_for_chipset, where a chip has the
number of its name (GP100 is 0x130, GB202 is 0x1b2); 3.7, 10.3 and 12.1 are those of the cards K80, B300 and GB10 in
cuda_images.toml."""
CAPABILITIES = {chip: capability for capability, chips in CHIPS.items() for chip in chips}
EVIDENCE = {
    "products": "https://github.com/NVIDIA/open-gpu-kernel-modules, README.md, Compatible GPUs: what the driver calls "
    "each GPU from Turing on; its chip by the PCI ID: https://github.com/pciutils/pciids, pci.ids; the capability of "
    "the chip: https://gitlab.freedesktop.org/mesa/mesa, src/nouveau/winsys/nouveau_device.c, sm_for_chipset, and of "
    "GK210, GB110 and GB20B by their cards K80, B300 and GB10",
    "devices": "https://github.com/pciutils/pciids, pci.ids: chip and name, where a simpler name has none of the driver's; "
    "the capability of the chip as for products",
}
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
        if chip in CAPABILITIES:
            names.setdefault(chip, set()).add(name)
        else:
            found.decide.append(
                f"{name} (PCI ID {device.upper()}): {chip or 'an unlisted chip'}, "
                "whose compute capability has no source here"
            )
    new = frozenset(names)
    told = {
        (simplify_name(name), CAPABILITIES[chip]) for chip, each in names.items() for name in each
    }
    for chip, name in sorted(known.values(), key=lambda row: (len(row[1]), row)):
        for part in _split(name) if chip in CAPABILITIES else ():
            key = simplify_name(part), CAPABILITIES[chip]
            if key[0] and key not in told:
                told.add(key)
                names.setdefault(chip, set()).add(part)
    found.wrong = list(_take_out_moved(names, table))
    sources = {
        True: f"products: driver {driver[1]}, and devices: version {version[1]}, asked on {day}",
        False: f"devices: version {version[1]}, asked on {day}",
    }
    rows = [
        {
            "compute_capability": CAPABILITIES[chip],
            "chip": chip,
            "names": _join(each, chip, table),
            "source": sources[chip in new],
        }
        for chip, each in names.items()
    ]
    found.lists = [Asked("card", rows, _get_key, _order, "products", grows=("names",))]
    found.evidence = EVIDENCE
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


def _take_out_moved(names: dict[str, set[str]], table: dict[str, Any]) -> Iterator[str]:
    """Take out the names that rows have at another compute capability, and yield a sentence for each."""
    known: dict[str, set[str]] = {}
    for row in table["card"]:
        for name in row["names"]:
            known.setdefault(name, set()).add(row["compute_capability"])
    for chip, each in names.items():
        for name in sorted(each):
            capability, others = CAPABILITIES[chip], sorted(known.get(name, ()))
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
