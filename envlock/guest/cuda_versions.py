"""Print the version numbers of the CUDA libraries that TensorFlow's own loader finds: a standalone
program.

libtensorflow_framework exports `cudnnGetVersion` and similar functions as wrappers that load the
library with TensorFlow's own loader. Calling them loads the library as the first operation would,
so this is never done in the user's process.

Argument: JSON with `mark` (the beginning of the answer) and `path` (the import path, or null for
the interpreter's own). The answer is one line of JSON: a number by the key of each library, 0 for
one that cannot be loaded.
"""

from __future__ import annotations

import ctypes
import json
import os
import sys

ASK = (
    ("cudart", "cudaRuntimeGetVersion", "pointer"),
    ("cudnn", "cudnnGetVersion", "value"),
    ("nccl", "ncclGetVersion", "pointer"),
    ("cublas", "cublasGetVersion_v2", "handle"),
    ("cublasLt", "cublasLtGetVersion", "value"),
    ("cufft", "cufftGetVersion", "pointer"),
)
"""(key, symbol, how): `value` returns the number, `pointer` writes it, `handle` writes it after a
null handle.
"""


def is_mapped(name: str) -> bool:
    """Return whether a file whose path contains this is mapped into this process."""
    with open("/proc/self/maps", errors="replace") as maps:
        return any(name in line for line in maps)


def main() -> None:
    """Import TensorFlow, ask its loader, and exit before anything is shut down."""
    asked = json.loads(sys.argv[1])
    sys.path[:] = asked["path"] or sys.path
    # Imported here: it is found on the path that was just set.
    import tensorflow

    folder = os.path.dirname(tensorflow.__file__)
    library = ctypes.CDLL(os.path.join(folder, "libtensorflow_framework.so.2"))
    answers = {}
    for key, symbol, how in ASK:
        try:
            ask = getattr(library, symbol)
        except AttributeError:
            continue
        number = ctypes.c_int(0)
        if how == "value":
            ask.restype = ctypes.c_size_t
            answers[key] = ask()
            # Without a status, TensorFlow's wrapper returns an error as the number if the library
            # is missing (14 for cuBLASLt), so the library has to be mapped.
            if not is_mapped(f"/lib{key}.so"):
                answers[key] = 0
        else:
            # These two return a status, which is 0 for success.
            if how == "handle":
                failed = ask(None, ctypes.byref(number))
            else:
                failed = ask(ctypes.byref(number))
            answers[key] = number.value if not failed else 0
    print(asked["mark"] + json.dumps(answers), flush=True)
    os._exit(0)


if __name__ == "__main__":
    main()
