"""Ask `envlock diverge` about every program of its zoo, and print a table: python tools/diverge_zoo.py PYTHON [RUNS]"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from tests.divergence.zookeeper import ANIMALS, KERAS_2, KERAS_3, keeper

CONTROLS = 20


def main() -> None:
    """Print a line a program, and how many are right."""
    python, runs = Path(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 5
    right = 0
    with tempfile.TemporaryDirectory() as folder, keeper(python, Path(folder)) as keeping:
        first = keeping.ask("clean_fit", runs=2)
        keras = first.attachments["keras"] or ""
        animals = [*ANIMALS, *(KERAS_2 if keras.startswith("2") else KERAS_3)]
        print(f"TensorFlow {first.attachments['tensorflow']}, Keras {keras}, {runs} runs each")
        for animal in animals:
            start = time.monotonic()
            report = keeping.ask(animal.name, runs=runs)
            right += animal.is_right(report)
            seen = report.attachments
            place = f"line {seen['place']['line']}" if seen["place"] else "no line"
            said = f"{seen['verdict']}: {seen['culprit']}, {place}"
            mark = "right" if animal.is_right(report) else "WRONG"
            print(f"| {animal.name} | {said} | {mark} | {time.monotonic() - start:.1f} s |", flush=True)
        clean = [keeping.ask("clean" if number % 4 else "clean_fit", runs=3).match for number in range(CONTROLS)]
    print(f"right: {right} of {len(animals)}; clean controls identical: {sum(clean)} of {CONTROLS}")


if __name__ == "__main__":
    main()
