"""The canonical text of XLA's modules: what means nothing goes, what means something stays."""

from __future__ import annotations

import pytest

from envlock.numerics.programs.hlo_text import parse_module

MODULE = """\
HloModule a_inference_train_47__.6, is_scheduled=true, entry_computation_layout={(f32[8,4]{1,0}, /*index=1*/f32[])->f32[]}

FileNames
1 "train.py"

%fused_computation (param_0: f32[8]) -> f32[8] {
  %param_0 = f32[8]{0} parameter(0)
  ROOT %add.3 = f32[8]{0} add(%param_0, %param_0), metadata={op_type="AddV2" op_name="a/add {" source_file="t.py" source_line=7}
}

ENTRY %main.9 (x.1: f32[8]) -> f32[8] {
  %x.1 = f32[8]{0} parameter(0), frontend_attributes={a="}"}
  %constant.2 = f32[] constant(0.5)
  ROOT %fusion = f32[8]{0} fusion(%x.1), kind=kLoop, calls=%fused_computation, metadata={op_name="\\"b"}, backend_config=SETTINGS
}
""".replace("SETTINGS", '{"b":1,"outer_dimension_partitions":["2"]}')


def test_names_metadata_comments_and_tables_go() -> None:
    assert parse_module(MODULE).lines == (
        "HloModule, is_scheduled=true, entry_computation_layout={(f32[8,4]{1,0}, f32[])->f32[]}",
        "%0 -> f32[8] {",
        "%1 = f32[8]{0} parameter(0)",
        "ROOT %2 = f32[8]{0} add(%1, %1)",
        "}",
        "ENTRY %3 -> f32[8] {",
        "%4 = f32[8]{0} parameter(0)",
        "%5 = f32[] constant(0.5)",
        "ROOT %6 = f32[8]{0} fusion(%4), kind=kLoop, calls=%0, "
        'backend_config={"b": 1, "outer_dimension_partitions": ["2"]}',
        "}",
    )


def test_instructions_know_their_lines() -> None:
    add = parse_module(MODULE).instructions[1]
    assert (add.operation, add.file, add.line) == ("a/add {", "t.py", 7)
    fusion = parse_module(MODULE).instructions[-1]
    assert (fusion.operation, fusion.file, fusion.line) == ("\\", None, None)
    assert parse_module(MODULE).instructions[0].operation is None


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("a_inference_train_47__.6", "a_inference_step_9__.1"),
        ("%add.3", "%other.77"),
        ("source_line=7", "source_line=9"),
        ('"b":1,"outer_dimension_partitions":["2"]', '"outer_dimension_partitions":["2"],"b":1'),
        ("/*index=1*/", ""),
        ('1 "train.py"', '1 "b.py"'),
        ('frontend_attributes={a="}"}', 'frontend_attributes={a="x"}'),
    ],
)
def test_what_means_nothing_changes_nothing(before: str, after: str) -> None:
    assert before in MODULE
    assert parse_module(MODULE.replace(before, after)).text == parse_module(MODULE).text


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ('"outer_dimension_partitions":["2"]', '"outer_dimension_partitions":["1"]'),
        ("constant(0.5)", "constant(0.25)"),
        ("add(%param_0, %param_0)", "multiply(%param_0, %param_0)"),
        ("is_scheduled=true", "is_scheduled=false"),
        ("f32[8]{0} fusion(%x.1)", "f32[8]{0} fusion(%constant.2)"),
        ("kind=kLoop", "kind=kInput"),
        ("ENTRY ", ""),
    ],
)
def test_what_means_something_changes_the_text(before: str, after: str) -> None:
    assert before in MODULE
    assert parse_module(MODULE.replace(before, after)).text != parse_module(MODULE).text


def test_settings_of_older_printers_are_texts() -> None:
    new = MODULE.replace(
        '{"b":1,"outer_dimension_partitions":["2"]}', r'"{\"outer_dimension_partitions\":[\"2\"],\"b\":1}"'
    )
    assert parse_module(new).text == parse_module(MODULE).text
    odd = MODULE.replace('{"b":1,"outer_dimension_partitions":["2"]}', "{b=1}")
    assert parse_module(odd).lines[-2].endswith("backend_config={b=1}")


def test_a_text_that_ends_early_is_read_to_its_end() -> None:
    cut = MODULE[: MODULE.index("source_line=7")]
    assert parse_module(cut).lines[-1] == "ROOT %2 = f32[8]{0} add(%1, %1)"
