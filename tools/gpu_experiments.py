"""What only a GPU can decide: eleven experiments, each a list of programs to run in settings that are compared.

A table, and nothing that runs: tools/testgpu.py does. `rows` name the rows of determinism_sources.toml that a case
speaks of; the number of an experiment is its place in EXPERIMENTS.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

RAISES = {
    "resize-nearest-backprop": "nearest_gradient",
    "fused-batch-norm-frozen-backprop": "frozen_norm_gradient",
    "adjust-contrast": "adjust_contrast",
    "crop-and-resize-backprop-gpu": "crop_gradient",
    "bincount": "bincount_weights",
    "sparse-dense-matmul": "sparse_matmul",
    "scatter-ref-variables": "ref_scatter",
    "debug-numeric-summary": "debug_summary",
    "dilation2d-backprop": "dilation_gradient",
    "max-pool-with-argmax-backprop": "argmax_pool_gradient",
    "svd-one-column": "svd_one_column",
    "fake-quant-gradients": "fake_quant_gradient",
    "xla-gpu-select-and-scatter": "xla_pool_gradient",
    "unseeded-random-ops": "unseeded",
    "ops-ignoring-global-seed": "fractional_pool",
    "generator-nondeterministic-state": "free_generator",
    "timestamp-op": "timestamp",
}
"""Rows that promise an error under op determinism, and the program that reaches each."""

FIXED = {
    "cudnn-conv-autotune": "conv_forward",
    "cudnn-conv-backprop-filter": "conv_filter_gradient",
    "cudnn-conv-backprop-input": "conv_input_gradient",
    "cudnn-max-pool-backprop": "max_pool_gradient",
    "bias-add-backprop": "bias_gradient",
    "resize-bilinear-backprop": "bilinear_gradient",
    "segment-reduction-sorted": "segment_sum",
    "segment-reduction-unsorted": "unsorted_segment_sum",
    "indexed-slices-to-tensor": "indexed_slices",
    "gather-backprop": "gather_gradient",
    "softmax-cross-entropy": "softmax_gradient",
    "sparse-softmax-cross-entropy": "sparse_softmax_gradient",
    "ctc-loss-backprop": "ctc_gradient",
    "depthwise-conv-backprop-filter": "depthwise_filter_gradient",
    "scatter-nd": "scatter_nd",
    "xla-gpu-reductions": "xla_reduction",
    "xla-gpu-scatter": "xla_scatter",
}
"""Rows that promise equal bits under op determinism, and the program that reaches each."""


@dataclass(frozen=True)
class Case:
    """A program in one setting.

    Attributes:
        name: of the setting, within its experiment.
        program: a key of PROGRAMS in gpu_programs.py.
        rows: of determinism_sources.toml.
        environ: variables that are set; None takes one away.
        determinism: whether op determinism is on.
        processes, calls: how many fresh processes, and how many calls in each.
        memory_mib: a limit of the GPU's memory; None: no limit.
        tf32: whether TensorFloat-32 is allowed by the API; None: as it is.
        observed: whether every operation is looked at, as `envlock diverge` does.
        everywhere: whether it also runs on the CPU of the machine, to compare.
        several: whether it needs two devices.
        needs: what else must be there, in words; the driver knows `MIG`.
    """

    name: str
    program: str
    rows: tuple[str, ...] = ()
    environ: Mapping[str, str | None] = field(default_factory=dict)
    determinism: bool = False
    processes: int = 1
    calls: int = 100
    memory_mib: int | None = None
    tf32: bool | None = None
    observed: bool = False
    everywhere: bool = False
    several: bool = False
    needs: str | None = None


def _pairs(rows: Mapping[str, str]) -> list[Case]:
    """Return each program of a row without op determinism and with it."""
    return [
        Case("on" if determinism else "off", program, (row,), determinism=determinism)
        for row, program in rows.items()
        for determinism in (False, True)
    ]


def _starts(
    program: str, row: str, settings: Mapping[str, Mapping[str, str | None]], processes: int
) -> list[Case]:
    """Return a program in many fresh processes, in each setting."""
    return [
        Case(name, program, (row,), environ, processes=processes, calls=1)
        for name, environ in settings.items()
    ]


AUTOTUNE = "TF_CUDNN_USE_AUTOTUNE"
CONV = "cudnn-conv-autotune"
EXPERIMENTS: dict[str, list[Case]] = {
    "rows that promise an error": _pairs(RAISES),
    "rows that promise equal bits": _pairs(FIXED),
    "autotuning of convolutions": [
        *_starts("residual_block", CONV, {"as it is": {}, "no autotuning": {AUTOTUNE: "0"}}, 20),
        Case("op determinism", "residual_block", (CONV,), determinism=True, processes=20, calls=1),
        Case("little memory", "residual_block", ("cudnn-conv-oom-selection",), processes=20, calls=1, memory_mib=256),
        *_starts("xla_block", "xla-gpu-autotuning", {"XLA as it is": {}}, 10),
        *_starts(
            "xla_block", "xla-gpu-autotuning", {"XLA, no autotuning": {"XLA_FLAGS": "--xla_gpu_autotune_level=0"}}, 10
        ),
    ],
    "autotuning of recurrent layers": [
        *_starts("recurrent", "cudnn-rnn-autotune", {"as it is": {}}, 10),
        *_starts("recurrent", "cudnn-rnn-autotune", {"no autotuning": {"TF_CUDNN_RNN_USE_AUTOTUNE": "0"}}, 10),
        Case("op determinism", "recurrent", ("cudnn-rnn-autotune",), determinism=True, processes=10, calls=1),
    ],
    "whether looking changes the result": [
        Case(name, program, (CONV,), determinism=determinism, observed=observed, calls=3, processes=3)
        for program in ("residual_block", "xla_block", "recurrent")
        for determinism in (False, True)
        for name, observed in (("alone", False), ("observed", True))
    ],
    "XLA as Keras chooses it": [
        Case("as it is", "keras_fit", ("xla-on-by-keras3",), processes=5, calls=1),
        Case("op determinism", "keras_fit", ("xla-on-by-keras3",), determinism=True, processes=5, calls=1),
    ],
    "CPU against GPU": [
        Case("each device", program, (), determinism=True, calls=3, everywhere=True)
        for program in ("matmul", "conv_forward", "conv_filter_gradient", "residual_block", "recurrent", "attention")
    ],
    "several GPUs": [
        Case(f"NCCL_ALGO={algorithm}" if algorithm else "as it is", "all_reduce", ("nccl-algorithm-selection",),
             {"NCCL_ALGO": algorithm}, calls=20, processes=3, several=True)
        for algorithm in (None, "Ring", "Tree", "NVLS")
    ],
    "TensorFloat-32": [
        Case("as it is", "matmul", ("tf32",), calls=3),
        Case("allowed by the API", "matmul", ("tf32",), calls=3, tf32=True),
        Case("refused by the API", "matmul", ("tf32",), calls=3, tf32=False),
        Case("NVIDIA_TF32_OVERRIDE=0", "matmul", ("tf32",), {"NVIDIA_TF32_OVERRIDE": "0"}, calls=3),
    ],
    "the allocator of CUDA": [
        *_starts("residual_block", "cudnn-conv-oom-selection", {"as it is": {}}, 5),
        *_starts(
            "residual_block", "cudnn-conv-oom-selection",
            {"cuda_malloc_async": {"TF_GPU_ALLOCATOR": "cuda_malloc_async"}}, 5,
        ),
        Case("fused attention", "attention", ("cudnn-fused-attention",), processes=3, calls=20),
        Case("fused attention, op determinism", "attention", ("cudnn-fused-attention",), determinism=True, calls=20),
    ],
    "slices of a GPU": [
        Case("on the slice", program, ("gpu-architecture-and-sm-count",), determinism=True, calls=3, needs="MIG")
        for program in ("matmul", "conv_forward", "residual_block", "unsorted_segment_sum")
    ],
}  # fmt: skip
"""Title -> cases; the eleven experiments in their order."""
