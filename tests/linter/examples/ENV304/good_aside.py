import json

import numpy as np


def report(wanted, found):
    missed = set(wanted) - set(found)
    return json.dumps({"missed": list(missed), "new": list(set(found) - set(wanted))})


update_ops = list(set(before) | set(after))
np.save("x", report(["a"], ["b"]))
