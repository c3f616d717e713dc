"""The NVIDIA driver and the GPUs that CUDA will use, queried with NVML in a child process.

The modules:

    hostfs    what /sys, /proc and /dev show without asking the driver
    probe     the parent's side of the child: start it, wait for a limited time, read one answer
    child     what runs in that child; the only place where `pynvml` is imported
    nvml      the questions, and the allow-list of what may be answered
    visible   which of the GPUs CUDA will use, and in which order
    devices   the child's answer as facts
    failures  one sentence with its fix for every way in which this can fail
"""
