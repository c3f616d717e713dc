"""What people paste, read as a part of a lockfile: texts in the form of those in public threads."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest

from envlock.lock.pastes import FORMATS, read_paste
from tests.golden_files import assert_as_golden

FREEZE = """
    absl-py==1.0.0
    Keras_Preprocessing==1.1.1
    tensorflow-gpu==2.3.0
    numpy==1.18.*
    h5py==2.10.0 ; python_version < "3.9"
    protobuf==3.19.1 \\
        --hash=sha256:0a1b
    six>=1.10
    -e git+https://example.org/me/mine@0a1b2c#egg=mine
    foo @ file:///home/conda/foo_1234/work
"""
PIP_LIST = """
    (DLC) me@host:~$ python -m pip list
    Package           Version    Editable project location
    ----------------- ---------- -------------------------
    absl-py           1.4.0
    mine              0.1.0      /home/me/mine
    (DLC) me@host:~$ nvcc 12.1
    gast 9.9
"""
ENVIRONMENT = """
    name: jsalt
    channels:
        - conda-forge
    dependencies:
        - python=3.6
        - tensorflow=1.8.0
        - conda-forge::numpy=1.14.5=py36h0
        - nltk>=3
        - pip:
            - wget
            - absl-py==0.12.0
        - h5py==2.10.0
    prefix: /home/me
"""
CONDA_LIST = """
    # packages in environment at /home/me/.conda/envs/tf:
    #
    # Name                    Version                   Build  Channel
    _tflow_select             2.1.0                       gpu    defaults
    absl-py                   0.7.0                    py36_0    defaults
    boto3                     1.9.132                  pypi_0    pypi
    freetype                  2.8              vc14h17c9bdf_0  [vc14]  anaconda
    python                    3.6.3                         1    conda-forge
"""
NGC = """
    ARG TAG=21.04
    FROM python:3.11 AS builder
    RUN pip install numpy==1.0.0
    FROM nvcr.io/nvidia/tensorflow:${TAG}-tf2-py3
    RUN pip install --no-cache-dir h5py==3.1.0 "scipy==1.6.2"
"""
CUDA = """
    FROM nvidia/cuda:12.2.2-cudnn8-runtime-ubuntu22.04
"""
STAGED = """
    FROM --platform=linux/amd64 docker.io/tensorflow/tensorflow:2.15.0-gpu AS base
    FROM base
"""
SLIM = """
    FROM python:3.11.7-slim-bookworm
"""
REPORT = """
    == check python ===================================================
    python version: 3.6.6
    == check os platform ===============================================
    os: Linux
    os release version: 3.10.0-957.el7.x86_64
    linux distribution: ('debian', 'stretch/sid', '')
    machine: x86_64
    == check pips ===================================================
    numpy                         1.18.5
    tensorflow                    2.0.3
    == tensorflow import ============================================
    tf.version.VERSION = 2.0.3
    == env ==========================================================
    LD_LIBRARY_PATH is unset
    == nvidia-smi ===================================================
    | NVIDIA-SMI 418.67       Driver Version: 418.67       CUDA Version: 10.1     |
"""
OLD_REPORT = """
    == cat /etc/issue ===============================================
    Linux 2b98f5ebc987 4.4.0-78-generic #99-Ubuntu SMP x86_64 GNU/Linux
    VERSION_ID="16.04"
    == check pips ===================================================
    numpy (1.13.0)
    == tensorflow import ============================================
    tf.VERSION = 1.2.0
"""
TABLE = """
    > +-----------------------------------------------------------------------------+
    > | NVIDIA-SMI 450.66       Driver Version: 418.67       CUDA Version: 10.1     |
    > |-------------------------------+----------------------+----------------------+
    > | GPU  Name        Persistence-M| Bus-Id        Disp.A | Volatile Uncorr. ECC |
    > |===============================+======================+======================|
    > |   0  Tesla V100-SXM2...  Off  | 00000000:00:04.0 Off |                    0 |
    > | N/A   38C    P0    41W / 300W |  10633MiB / 16130MiB |      0%      Default |
"""
WIDE = """
    | NVIDIA-SMI 550.40.07              Driver Version: 550.40.07      CUDA Version: 12.4     |
    |   0  NVIDIA GeForce RTX 4070        Off |   00000000:2D:00.0  On |                  N/A |
    |  0%   36C    P5             17W /  200W |     430MiB /  12282MiB |      1%      Default |
"""
TWO_KINDS = """
    | NVIDIA-SMI 440.33.01    Driver Version: 440.33.01    CUDA Version: 10.2     |
    |   0  Quadro GV100        Off  | 00000000:15:00.0 Off |                  Off |
    |   1  Quadro P1000        Off  | 00000000:2D:00.0 Off |                  N/A |
"""
FORM = """
    ### TensorFlow version

    v2.16.1-0-g5bc9d26649c 2.16.1

    ### OS platform and distribution

    Linux Ubuntu 22.04

    ### Python version

    3.9

    ### CUDA/cuDNN version

    No
"""
OLD_FORM = """
    **System information**
    - OS Platform and Distribution (e.g., Linux Ubuntu 16.04): Debian GNU/Linux 12 (bookworm)
    - TensorFlow installed from (source or binary): binary
    - TensorFlow version (use command below): v2.4.0-49-g85c8b2a817f 2.4.1
    - Python version: 3.6.9
    - GPU model and memory: 8*V100

    It is the same with TensorFlow 2.5, and with Python 3.8
"""
COLLECTED = """
    TensorFlow version **1.4.1**
    OS: Ubuntu 20.04.2 LTS (x86_64)
    Python version: 3.8 (64-bit runtime)
    CUDA runtime version: Could not collect
    Nvidia driver version: 450.102.04

    Versions of relevant libraries:
    [pip3] numpy==1.19.1
    [conda] h5py\t2.10.0\tpy38h06a4308_0
"""
PRINTED = """
    jax:    0.4.32
    jaxlib: 0.4.31
    numpy:  2.1.2
    python: 3.12.7 | packaged by conda-forge | (main, Oct  4 2024, 16:05:46) [GCC 13.3.0]
"""
SHORT = """
    Thank you for your interest. The version is as follows:
    Python 3.6.4
    Keras 2.1.6
    Tensorflow 1.7
"""
STARTED = """
    Operating System: Debian
    - **TensorFlow version (use command below)**:('v1.3.0-rc2-20-g0787eee', '1.3.0')
    Python 3.8.10 (default, Nov 22 2023, 10:22:35)
    Keras 2.1.6 (or so I think)
"""
CUT_OFF = """
    libuuid                   1.0.3                h1bed415_2
    msgpack                   1.0.2                    pypi_0    pypi
    mkl                       2021.3.0           h06a4308_520
    mysql-libs                8.0.2
"""
FILTERED = """
    (tensorflow)$ pip list | grep tensorflow
    tensorflow (1.0.0)
    (tensorflow)$ python -c 'import tensorflow as tf; print(tf.__version__)'
    1.0.1
"""
LOG = """
    Requirement already satisfied: six>=1.10 in ./env/lib/python3.6/site-packages (from -r all.txt (line 3)) (1.15.0)
    Installing collected packages: numpy, absl-py
    Successfully installed absl-py-0.7.1 numpy-1.19.1
"""
WINDOWS = """
    | NVIDIA-SMI 546.12                 Driver Version: 546.12       CUDA Version: 12.3     |
    |   0  NVIDIA GeForce RTX 4060 ...  WDDM  | 00000000:01:00.0 Off |                  N/A |
"""
PLATFORMS = """
    - OS Platform and Distribution: 'Linux-4.14.137+-x86_64-with-Ubuntu-18.04-bionic'
    - Python version: 3.6
    tf.__version__: 1.15.0
"""
NEW_PLATFORM = """
    OS: Linux-6.5.0-41-generic-x86_64-with-glibc2.35
    tf.__version__ = '2.16.1'
"""
TENSORBOARD = """
    --- check: general
    INFO: os.name: posix
    --- check: installed_packages
    INFO: installed: tensorboard==2.0.0
    INFO: installed: tensorflow-gpu==2.0.0
    --- check: tensorflow_python_version
    INFO: tensorflow.__version__: '2.0.0'
    INFO: tensorflow.__git_version__: 'v2.0.0-rc2-26-g64c3d38'
"""
QUOTED = """
    The file is:

    `FROM nvcr.io/nvidia/cuda:10.0-cudnn7-runtime-ubuntu18.04
    RUN pip3 install --upgrade pip h5py==2.10.0`
"""
NEW_FORM = """
    ### TensorFlow version

    tf 2.18

    ### OS platform and distribution

    Linux Ubuntu  22.04.4 LTS

    ### CUDA/cuDNN version

    CUDA 12.5; CUDNN 9.3

    ### GPU model and memory

    NVIDIA GeForce RTX 3080 Ti  12 GBs

    ### Standalone code to reproduce the issue

    >>> tf.__version__
    '2.18.0'
    >>> keras.__version__
    Traceback (most recent call last):
"""
LIST_OF_CARD = """
    - Ubuntu 18.04 LTS
    - TensorFlow version v1.12.1-45908-g9af48cb079
    - CUDA 11.1 cuDNN 8.0.5.39
    - GPU: GTX1650, 4 GB
    - kernel : 4.4.0-59-generic
    numpy.__version__  # '1.19.1'
"""
TRANSFORMERS = """
    - `transformers` version: 4.38.2
    - Platform: Linux-6.5.0-26-generic-x86_64-with-glibc2.35
    - Huggingface_hub version: 0.21.4
    - PyTorch version (GPU?): 2.2.1+cu121 (True)
    - Tensorflow version (GPU?): not installed (NA)
"""
UV_LOCK = """
    version = 1
    [[package]]
    name = "six"
    version = "1.17.0"
    source = { registry = "https://pypi.org/simple" }
    dependencies = [
        { name = "numpy" },
    ]
    [package.optional-dependencies]
    name = "toolz"
    version = "0.12.0"
    [[package]]
    name = "tensorflow"
    version = "2.18.1"
"""
PIPFILE_LOCK = """
                "sha256:b91dd7"
            ],
            "version": "==0.9.8"
        },
        "numpy": {
            "hashes": [
                "sha256:0e15ab"
            ],
            "index": "pypi",
            "markers": "python_version >= '3.9'",
            "version": "==1.26.4"
        },
"""
TENSORFLOW_LOG = """
    device:GPU:0 with 9611 MB memory:  -> device: 0, name: NVIDIA GeForce RTX 3060, pci bus id: 1:0.0, compute capability: 8.6
    device:GPU:1 with 7 MB memory) -> physical GPU (device: 1, name: Tesla T4, pci bus id: 2:0.0, compute capability: 7.5)
    I tensorflow/stream_executor/cuda/cuda_dnn.cc:384] Loaded cuDNN version 8904
"""
OTHER_CUDNN = """
    E xla/cuda_dnn.cc:447] Loaded runtime CuDNN library: 8.8.0 but source was compiled with: 8.9.4.  CuDNN library needs
"""
PINNED = """
    tensorflow == 2.5.0
    cuda == 11.1
    cudnn ==8.2.0
    python==3.8
"""
BLANK = """
    ### TensorFlow version

    tf-gpu 2.4.0

    ### CUDA/cuDNN version

    11.0 8.0

    Python platform: Linux-5.15.0-101-generic-x86_64-with-glibc2.31
"""
LISTED = """
    GPU models and configuration: GPU 0: NVIDIA A100-SXM4-40GB
    GPU 1: NVIDIA A100-SXM4-40GB (UUID: GPU-0)
"""

STATED = {
    "NEW_FORM": NEW_FORM,
    "LIST_OF_CARD": LIST_OF_CARD,
    "TRANSFORMERS": TRANSFORMERS,
    "UV_LOCK": UV_LOCK,
    "PIPFILE_LOCK": PIPFILE_LOCK,
    "TENSORFLOW_LOG": TENSORFLOW_LOG,
    "OTHER_CUDNN": OTHER_CUDNN,
    "LISTED": LISTED,
    "PINNED": PINNED,
    "BLANK": BLANK,
    "FREEZE": FREEZE,
    "PIP_LIST": PIP_LIST,
    "ENVIRONMENT": ENVIRONMENT,
    "CONDA_LIST": CONDA_LIST,
    "NGC": NGC,
    "CUDA": CUDA,
    "STAGED": STAGED,
    "SLIM": SLIM,
    "REPORT": REPORT,
    "OLD_REPORT": OLD_REPORT,
    "TABLE": TABLE,
    "WIDE": WIDE,
    "FORM": FORM,
    "OLD_FORM": OLD_FORM,
    "COLLECTED": COLLECTED,
    "PRINTED": PRINTED,
    "SHORT": SHORT,
    "STARTED": STARTED,
    "CUT_OFF": CUT_OFF,
    "FILTERED": FILTERED,
    "LOG": LOG,
    "WINDOWS": WINDOWS,
    "TWO_KINDS": TWO_KINDS,
    "PLATFORMS": PLATFORMS,
    "NEW_PLATFORM": NEW_PLATFORM,
    "TENSORBOARD": TENSORBOARD,
    "QUOTED": QUOTED,
}
GOLDEN = Path(__file__).parents[1] / "golden" / "pastes.txt"
"""What each text states: the value, its line, `...` where it is only the beginning, `?` where it is a guess."""


def test_what_a_text_states() -> None:
    lines = []
    for name, text in STATED.items():
        paste = read_paste(textwrap.dedent(text))
        assert paste is not None
        assert paste.disputed == []
        stated = {
            each.path: f"{each.value} ({each.line})" + " ..." * each.is_loose + " ?" * each.is_guess
            for each in paste.statements
        }
        assert len(stated) == len(paste.statements)
        lines += [f"# {name}", *(f"{path} = {value}" for path, value in sorted(stated.items())), ""]
    assert_as_golden("\n".join(lines), GOLDEN)


def test_each_format_is_tried() -> None:
    pastes = filter(None, (read_paste(textwrap.dedent(text)) for text in STATED.values()))
    assert {name for paste in pastes for name in paste.names} == {each.name for each in FORMATS}


@pytest.mark.parametrize(
    "text",
    [
        "",
        "hello\nworld 1.0",
        "x" * 5000,
        "FROM scratch",
        "dependencies:\n- pip",
        "numpy: 1 of 2\nPython 3.8 is",
        "\x1b[2J==\n",
        ("$python" * 140 + "\n") * 4000,
        "Tensorflow = 2.4.0/2.3.0 work\nTensorflow = 2.2.0\n",
        # That of conda itself, and a build between two versions.
        "python version : 3.7.6.final.0",
        "TensorFlow version: v1.12.1-45908-g9af48cb079",
        # The same words for the toolkit and for what the driver can do.
        "CUDA version: 12.4\n",
        "CUDA/cuDNN version: 12.4",
        "GPU model and memory: RTX 3090 and GTX 1080",
        "GPU: RTX 4000",
        "GPU: no",
        "Ubuntu 20.04 works",
    ],
)
def test_a_text_that_states_nothing_is_none(text: str) -> None:
    assert read_paste(text) is None


def test_two_values_of_one_fact_are_none() -> None:
    paste = read_paste("numpy==1.0\nsix==1.2\nnumpy==2.0\n")
    assert paste is not None
    assert ([each.path for each in paste.statements], paste.disputed) == (
        ["packages.six.version"],
        ["packages.numpy.version"],
    )


def test_of_two_formats_that_contradict_each_other_none_is_right() -> None:
    paste = read_paste("numpy==1.26.4\nsix==1.17.0\nnumpy version: 1.25\nPython version: 3.1\nPython version: 3.11.7\n")
    assert paste is not None
    assert paste.disputed == ["packages.numpy.version", "python.version"]


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("8*V100", "Tesla V100"),
        ("NVIDIA Tesla T4, 16GB. Created using a cloud", "Tesla T4"),
        ("RTX3090", "GeForce RTX 3090"),
        ("2x NVIDIA GeForce RTX 2080 SUPER", "GeForce RTX 2080 SUPER"),
        ("GTX 940MX", "GeForce GTX 940MX"),
        ("Quadro RTX 4000", "Quadro RTX 4000"),
        ("A100 40GB", "A100"),
    ],
)
def test_a_card_is_named_as_its_driver_names_it(text: str, name: str) -> None:
    paste = read_paste(f"- GPU model and memory: {text}\n")
    assert paste is not None
    assert [(each.path, each.value) for each in paste.statements] == [("gpu.devices.0.name", name)]


def test_a_freeze_and_a_table_in_one_text_are_both_read() -> None:
    paste = read_paste(textwrap.dedent(FREEZE) + textwrap.dedent(WIDE))
    assert paste is not None
    assert paste.describe() == "pasted freeze and nvidia-smi table"
    assert {each.path.split(".")[0] for each in paste.statements} == {"gpu", "packages", "tensorflow"}
