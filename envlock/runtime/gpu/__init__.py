"""The NVIDIA driver and the GPUs that CUDA will see, asked through NVML in a child process.

What is in here:

    hostfs    what /sys, /proc and /dev say without asking the driver
    probe     the parent's side of the child: start it, wait with a bound, read one answer
    child     what runs in that child; the only place where `pynvml` is imported
    nvml      the questions, and the allow-list of what may be answered
    visible   which of the GPUs CUDA will show, and in which order
    devices   the child's answer as facts
    failures  one sentence with its fix for every way in which this can fail
"""
