"""What builders print: lines as buildx 0.13 and Docker 20.10 and 26 printed them."""

from __future__ import annotations

from typing import Any

from envlock.image.engines.engine_errors import (
    Trail,
    follow_buildx,
    follow_classic,
    list_pull_lines,
    select_output,
    strip_colors,
)

ID = "ba6ddf780c9690a1559e3abe42bc7e59941cbafb0c19c722dff9b32ccbf07fa2"


def test_the_image_that_buildx_wrote_is_noted_once() -> None:
    trail = Trail()
    for line in (
        "#7 exporting to image",
        "#7 exporting layers 0.2s done",
        f"#7 writing image sha256:{ID}",
        f"#7 writing image sha256:{ID} done",
        f"#5 0.054 writing image sha256:{'0' * 64}",  # a program's own words
    ):
        follow_buildx(line, trail)
    assert trail == Trail([f"sha256:{ID}"], [])


def test_images_and_containers_of_the_classic_builder_are_noted() -> None:
    trail = Trail()
    messages: list[dict[str, Any]] = [
        {"stream": "Step 2/2 : RUN echo oops >&2; exit 3"},
        {"stream": "\n"},
        {"stream": " ---> Running in 7aebb3a2f26f\n"},
        {"stream": "\x1b[91moops\n\x1b[0m"},
        {"stream": " ---> f41c519070a2\n"},
        {"aux": {"ID": f"sha256:{ID}"}},
        {"errorDetail": {"code": 3, "message": "it failed"}, "error": "it failed"},
    ]
    lines = [line for message in messages for line in follow_classic(message, trail)]
    assert lines == [
        "Step 2/2 : RUN echo oops >&2; exit 3",
        " ---> Running in 7aebb3a2f26f",
        "oops",
        " ---> f41c519070a2",
        "it failed",
    ]
    assert trail == Trail(["f41c519070a2", f"sha256:{ID}"], ["7aebb3a2f26f"])


def test_a_pull_is_told_without_its_bars() -> None:
    bar = {"status": "Downloading", "progressDetail": {"current": 1, "total": 2}, "progress": "[>  ]", "id": "14d9"}
    assert list_pull_lines(bar) == []
    assert list_pull_lines({"status": "Pull complete", "progressDetail": {}, "id": "14d9"}) == ["14d9: Pull complete"]
    assert list_pull_lines({"status": "Status: Downloaded newer image"}) == ["Status: Downloaded newer image"]
    assert list_pull_lines({}) == []


def test_an_error_and_a_pull_of_the_classic_builder_are_lines_and_an_answer_without_an_image_is_none() -> None:
    trail = Trail()
    assert follow_classic({"error": "no space left\x1b[0m"}, trail) == ["no space left"]
    assert follow_classic({"aux": {}}, trail) == []
    assert follow_classic({"status": "Pulling from library/python", "id": "3.11"}, trail) == [
        "3.11: Pulling from library/python"
    ]
    assert trail.images == []


def test_words_are_what_programs_said() -> None:
    buildx = [
        "#5 [2/3] RUN python3 -m pip --version",
        "#5 2.385 pip 23.0.1",
        "#5 DONE 2.8s",
        "------",
        " > [2/3] RUN python3 -m pip --version:",
        "2.385 pip 23.0.1",
        "------",
        "Dockerfile:2",
        "   1 |     FROM x",
        "   2 | >>> RUN y",
        "ERROR: failed to solve: z",
    ]
    assert select_output(buildx) == ["pip 23.0.1"]
    classic = ["Step 1/2 : FROM x", " ---> 14d92712bf2d", " ---> Running in 7aebb3a2f26f", "pip 23.0.1"]
    assert select_output([*classic, "Removing intermediate container daa36d3fa60f"]) == ["pip 23.0.1"]


def test_a_line_is_plain() -> None:
    assert strip_colors("\x1b[1;31mred\x1b[0m \r\n") == "red "
