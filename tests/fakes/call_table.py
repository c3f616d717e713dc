"""Writes the table that `nvml_replay.c` replays, by recording every call that pynvml makes to a library object.

It works on NVIDIA's library, on the compiled stand-in and on `FakeNvml` alike.
"""

from __future__ import annotations

import ctypes
from typing import Any

from tests.fakes.fake_nvml import number


class Recorder:
    """A library object that passes every call on and notes it; `lines` holds the table."""

    def __init__(self, library: Any) -> None:
        self.library = library
        self.lines: list[str] = []
        self.handles: dict[int | None, str] = {}

    def __getattr__(self, symbol: str) -> Any:
        function = getattr(self.library, symbol)  # AttributeError is "function not found", as in real life
        if symbol == "nvmlErrorString":
            return function

        def recorded(*arguments: Any) -> int:
            call = _Call(self, arguments)
            result = int(function(*arguments))
            outs = call.outputs(symbol) if result == 0 else []
            fields = ["call", symbol, call.signature or "-", ",".join(call.key) or "-", str(result), *outs]
            line = " ".join(fields)
            if line not in self.lines:
                self.lines.append(line)
            return result

        return recorded

    def handle(self, address: int | None, name: str | None = None) -> str:
        """Return the name of a device handle; a new one gets `name`."""
        return self.handles.setdefault(address, name or f"x{len(self.handles)}")


class _Call:
    """The arguments of one call, read before it is made: signature, key, and where its outputs will be."""

    def __init__(self, recorder: Recorder, arguments: tuple[Any, ...]) -> None:
        self.recorder = recorder
        self.signature = ""
        self.key: list[str] = []
        self.out: list[tuple[str, Any]] = []
        for argument in arguments:
            self._add(argument)

    def _add(self, argument: Any) -> None:
        target = getattr(argument, "_obj", None)
        if target is not None:  # byref()
            self._add_out(target)
        elif isinstance(argument, ctypes.Array):
            self.signature += f"o{ctypes.sizeof(argument)}"
            self.out.append(("o", argument))
        elif isinstance(argument, ctypes._Pointer):
            self.signature += "h"
            self.key.append(self.recorder.handle(ctypes.cast(argument, ctypes.c_void_p).value))
        elif isinstance(argument, ctypes.c_char_p):
            self.signature += "s"
            self.key.append((argument.value or b"").decode("ascii"))
        else:
            self._add_number(number(argument))

    def _add_out(self, target: Any) -> None:
        if isinstance(target, ctypes._Pointer):
            self.signature += "O"
            self.out.append(("O", target))
        elif isinstance(target, ctypes.Structure) and int(getattr(target, "version", 0) or 0):
            self.signature += f"x{ctypes.sizeof(target)}"
            self.key.append(f"v{target.version}")
            self.out.append(("x", target))
        else:
            self.signature += f"o{ctypes.sizeof(target)}"
            self.out.append(("o", target))

    def _add_number(self, value: int) -> None:
        last = self.out[-1][1] if self.out else None
        if self.signature.endswith(f"o{value}") and isinstance(last, ctypes.Array):
            self.signature += "n"  # the caller's buffer length is no input
        else:
            self.signature += "i"
            self.key.append(str(value & 0xFFFFFFFF))

    def outputs(self, symbol: str) -> list[str]:
        """Return what the library wrote, as the table has it."""
        found: list[str] = []
        for kind, place in self.out:
            if kind == "O":
                address = ctypes.cast(place, ctypes.c_void_p).value
                found.append(self.recorder.handle(address, self._handle_name(symbol)))
                continue
            data = ctypes.string_at(ctypes.addressof(place), ctypes.sizeof(place))
            if isinstance(place, ctypes.Array) and place._type_ is ctypes.c_char:
                data = data.partition(b"\0")[0] + b"\0"  # what follows in the buffer is the caller's noise
            found.append(data.hex() or "-")
        return found

    def _handle_name(self, symbol: str) -> str | None:
        if symbol.startswith("nvmlDeviceGetHandleByIndex"):
            return f"d{self.key[-1]}"
        return f"{self.key[0]}m{self.key[-1]}" if "GetMigDeviceHandleByIndex" in symbol else None
