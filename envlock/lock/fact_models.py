"""The facts of a lockfile, and the types of text and number that all its models use.

Texts are constrained here, so that nothing from a lockfile can reach a shell or a Dockerfile
unchecked.
"""

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

CONTROLS = r"\x00-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069"
"""Control characters of a terminal, and those that change the order of text (UAX #9)."""

Text = Annotated[str, Field(max_length=1000, pattern=rf"^[^{CONTROLS}]*$")]
Word = Annotated[str, Field(max_length=64, pattern=r"^[A-Za-z0-9][A-Za-z0-9_.+-]*$")]
Version = Annotated[str, Field(max_length=128, pattern=r"^[A-Za-z0-9][A-Za-z0-9.!+_-]*$")]
PackageName = Annotated[str, Field(max_length=128, pattern=r"^[a-z0-9]+(-[a-z0-9]+)*$")]
VariableName = Annotated[str, Field(max_length=128, pattern=r"^[A-Z][A-Z0-9_]*$")]
WheelTag = Annotated[
    str, Field(max_length=200, pattern=r"^[A-Za-z0-9_.]+-[A-Za-z0-9_.]+-[A-Za-z0-9_.]+$")
]
Sha256 = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
Digest = Annotated[str, Field(pattern=r"^sha256:[0-9a-f]{64}$")]
Hex = Annotated[str, Field(pattern=r"^([0-9a-f]{40}|[0-9a-f]{64})$")]
FactPath = Annotated[str, Field(max_length=300, pattern=r"^[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*$")]
PathPattern = Annotated[
    str, Field(max_length=300, pattern=r"^[A-Za-z0-9_*-]+(\.[A-Za-z0-9_*-]+)*$")
]
SettingName = Annotated[str, Field(max_length=128, pattern=r"^[A-Za-z][A-Za-z0-9_]*$")]
StartupName = Annotated[str, Field(max_length=100, pattern=r"^[A-Za-z0-9_-]+$")]
PciId = Annotated[str, Field(pattern=r"^[0-9a-f]{4}:[0-9a-f]{4}$")]
DeviceIndex = Annotated[str, Field(pattern=r"^[0-9]{1,3}$")]
Count = Annotated[int, Field(ge=0)]


class Strict(BaseModel):
    """No unknown fields, no conversions, no changes afterwards."""

    # Without protected namespaces: a processor has a `model_name`, about which old pydantic (<
    # 2.10) warns.
    model_config = ConfigDict(
        extra="forbid", strict=True, frozen=True, defer_build=True, protected_namespaces=()
    )


class StartupFacts(Strict):
    """The code that runs before the program, as digests: `.pth` files by name.

    `known` are files that are known to change no result, `modules` what this code imports and no
    installed package has, `replaced` the functions of Python that are not its own any more.
    """

    known: list[Text] | None = None
    modules: dict[StartupName, Digest] | None = None
    pth: dict[StartupName, Digest] | None = None
    replaced: list[Text] | None = None
    sitecustomize: Digest | None = None
    usercustomize: Digest | None = None


class PythonFacts(Strict):
    """The interpreter, and what it does in this process: `hash` of a text, null where it is random."""

    implementation: Word | None = None
    version: Version | None = None
    abi: Text | None = None
    compiler: Text | None = None
    prefix_kind: Literal["venv", "conda", "system"] | None = None
    startup: StartupFacts | None = None
    shadows: dict[StartupName, Digest] | None = None
    optimize: Count | None = None
    hash: int | None = None
    rounding: Literal["nearest", "upward", "downward", "toward-zero"] | None = None
    denormals: Literal["kept", "flushed"] | None = None
    time_zone: Text | None = None
    text_encoding: Text | None = None


class OriginFacts(Strict):
    """The origin of a package that was not installed from an index."""

    url: Text | None = None
    editable: bool | None = None
    vcs: Word | None = None
    commit: Hex | None = None
    sha256: Hex | None = None
    subdirectory: Text | None = None


class PackageFacts(Strict):
    """One installed distribution.

    `source` is the digest of what it consists of, if it came from a folder or file of this machine.
    """

    version: Version | None = None
    wheel_tags: list[WheelTag] | None = None
    installer: Text | None = None
    origin: OriginFacts | None = None
    source: Digest | None = None


class TensorflowFacts(Strict):
    """The TensorFlow that `import tensorflow` would load."""

    distributions: list[PackageName] | None = None
    version: Version | None = None
    nvidia_build: Word | None = None
    cuda_build: bool | None = None
    built_with_cuda: Version | None = None
    built_with_cudnn: Version | None = None
    compute_capabilities: list[Word] | None = None
    compiled_against_cudnn: Version | None = None
    plugins: list[Text] | None = None


class CudaLibraryFacts(Strict):
    """The file that TensorFlow's loader loads for one library, why, and what identifies its bytes."""

    linkage: Literal["dlopen", "needed", "static", "absent", "program"] | None = None
    soname: Text | None = None
    file: Text | None = None
    resolved_by: Text | None = None
    version: Version | None = None
    wheel_version: Version | None = None
    build_id: Annotated[str, Field(pattern=r"^[0-9a-f]{8,128}$")] | None = None
    record_sha256: Annotated[str, Field(pattern=r"^[A-Za-z0-9_-]{43}=?$")] | None = None
    size: Count | None = None
    claimed_by: list[Text] | None = None
    problem: Text | None = None
    compat_cuda: Version | None = None
    compat_drivers: list[Count] | None = None


class CudaFacts(Strict):
    """The CUDA libraries of this TensorFlow, by short names; a part of cuDNN is `cudnn_*`."""

    cuda_driver: CudaLibraryFacts | None = None
    cudart: CudaLibraryFacts | None = None
    cublas: CudaLibraryFacts | None = None
    cublasLt: CudaLibraryFacts | None = None  # noqa: N815 (NVIDIA's name)
    cufft: CudaLibraryFacts | None = None
    curand: CudaLibraryFacts | None = None
    cusolver: CudaLibraryFacts | None = None
    cusparse: CudaLibraryFacts | None = None
    cudnn: CudaLibraryFacts | None = None
    cudnn_ops_infer: CudaLibraryFacts | None = None
    cudnn_cnn_infer: CudaLibraryFacts | None = None
    cudnn_adv_infer: CudaLibraryFacts | None = None
    cudnn_ops_train: CudaLibraryFacts | None = None
    cudnn_cnn_train: CudaLibraryFacts | None = None
    cudnn_adv_train: CudaLibraryFacts | None = None
    cudnn_graph: CudaLibraryFacts | None = None
    cudnn_ops: CudaLibraryFacts | None = None
    cudnn_cnn: CudaLibraryFacts | None = None
    cudnn_adv: CudaLibraryFacts | None = None
    cudnn_heuristic: CudaLibraryFacts | None = None
    cudnn_engines_precompiled: CudaLibraryFacts | None = None
    cudnn_engines_runtime_compiled: CudaLibraryFacts | None = None
    cudnn_engines_tensor_ir: CudaLibraryFacts | None = None
    cudnn_ext: CudaLibraryFacts | None = None
    nccl: CudaLibraryFacts | None = None
    cupti: CudaLibraryFacts | None = None
    tensorrt: CudaLibraryFacts | None = None
    nvjitlink: CudaLibraryFacts | None = None
    nvrtc: CudaLibraryFacts | None = None
    ptxas: CudaLibraryFacts | None = None
    other_cuda: list[PackageName] | None = None


class KernelModuleFacts(Strict):
    """The loaded NVIDIA kernel module."""

    version: Version | None = None
    flavour: Literal["open", "proprietary"] | None = None


class NvmlFacts(Strict):
    """The NVML library: the version that it reports, and the name of its file."""

    version: Version | None = None
    file_version: Version | None = None


class BindingFacts(Strict):
    """The Python binding of NVML that was used."""

    distribution: Word | None = None
    version: Version | None = None
    problem: Word | None = None


class VisibleFacts(Strict):
    """The effect of CUDA_VISIBLE_DEVICES and CUDA_DEVICE_ORDER."""

    count: Count | None = None
    device_order: Word | None = None


class MigFacts(Strict):
    """A MIG device's slice of its GPU; memory in MiB."""

    profile: Text | None = None
    sm_count: Count | None = None
    gpu_slices: Count | None = None
    compute_slices: Count | None = None
    memory_mib: Count | None = None


class DeviceInfo(Strict):
    """Properties of a GPU that do not change bits by themselves."""

    vbios: Text | None = None
    persistence: bool | None = None
    compute_mode: Text | None = None
    power_limit_watts: Count | None = None


class DeviceFacts(Strict):
    """One GPU that CUDA uses; nothing here identifies the card. Memory in MiB."""

    name: Text | None = None
    architecture: Text | None = None
    compute_capability: Version | None = None
    pci_device_id: PciId | None = None
    pci_subsystem_id: PciId | None = None
    cores: Count | None = None
    sm_count: Count | None = None
    memory_mib: Count | None = None
    ecc: bool | None = None
    mig: MigFacts | None = None
    virtualization: Text | None = None
    info: DeviceInfo | None = None


class GpuFacts(Strict):
    """Driver and GPUs; `devices` by CUDA's index."""

    kernel_module: KernelModuleFacts | None = None
    surroundings: list[Word] | None = None
    driver_version: Version | None = None
    cuda_driver_version: Version | None = None
    nvml: NvmlFacts | None = None
    binding: BindingFacts | None = None
    visible: VisibleFacts | None = None
    devices: dict[DeviceIndex, DeviceFacts] | None = None


class KerasConfig(Strict):
    """The effect of keras.json and KERAS_BACKEND."""

    backend: Word | None = None
    epsilon: float | None = None
    floatx: Word | None = None
    image_data_format: Word | None = None
    nnx_enabled: bool | None = None


class JaxFacts(Strict):
    """JAX, and its settings from the environment."""

    version: Version | None = None
    jaxlib: Version | None = None
    settings: dict[SettingName, Text | None] | None = None


class TorchFacts(Strict):
    """PyTorch: its build, and its settings from the environment."""

    version: Version | None = None
    cuda: Version | None = None
    git_version: Version | None = None
    hip: Version | None = None
    settings: dict[SettingName, Text | None] | None = None


class KerasFacts(Strict):
    """Keras 3 (`version`), Keras 2 (`legacy_version`, from tf-keras) and their configuration."""

    version: Version | None = None
    legacy_version: Version | None = None
    config: KerasConfig | None = None


class BlasFacts(Strict):
    """The BLAS that NumPy was built with, and the BLAS files in its wheel."""

    name: Text | None = None
    version: Text | None = None
    configuration: Text | None = None
    files: list[Text] | None = None


class NumpyFacts(Strict):
    """NumPy."""

    version: Version | None = None
    blas: BlasFacts | None = None


class CpuFacts(Strict):
    """The processor; `quota` in CPUs."""

    vendor: Text | None = None
    family: Text | None = None
    model: Text | None = None
    model_name: Text | None = None
    flags: list[Word] | None = None
    affinity_count: Count | None = None
    quota: Annotated[float, Field(ge=0)] | None = None
    intra_op_threads: Count | None = None
    inter_op_threads: Count | None = None
    joblib_count: Text | None = None


class SystemFacts(Strict):
    """Operating system and C library."""

    os: Text | None = None
    os_version: Text | None = None
    kernel: Word | None = None
    kernel_release: Text | None = None
    machine: Word | None = None
    libc: Word | None = None
    libc_version: Version | None = None
    container: list[Text] | None = None


class LoadedFacts(Strict):
    """What one process had loaded after its imports, where no RECORD explains it: of Python itself by
    name, libraries by role, the files that nothing explains, and those that code at the start of Python opens; and
    the version and files of each package, as its RECORD lists them.
    """

    imports: list[Word] | None = None
    arithmetic: Text | None = None
    interpreter: dict[StartupName, Text] | None = None
    standard: dict[StartupName, Text] | None = None
    ld: list[Text] | None = None
    libc: list[Text] | None = None
    libm: list[Text] | None = None
    libstdcxx: list[Text] | None = None
    libgcc: list[Text] | None = None
    blas: list[Text] | None = None
    lapack: list[Text] | None = None
    openmp: list[Text] | None = None
    math: list[Text] | None = None
    cuda: list[Text] | None = None
    framework: list[Text] | None = None
    data: list[Text] | None = None
    unexplained: list[Text] | None = None
    startup: list[Text] | None = None
    packages: dict[PackageName, Text] | None = None


class Facts(Strict):
    """All facts: a section that is absent was not looked for, a section that is null does not exist
    on the machine.
    """

    python: PythonFacts | None = None
    packages: dict[PackageName, PackageFacts] | None = None
    tensorflow: TensorflowFacts | None = None
    cuda: CudaFacts | None = None
    gpu: GpuFacts | None = None
    keras: KerasFacts | None = None
    jax: JaxFacts | None = None
    torch: TorchFacts | None = None
    numpy: NumpyFacts | None = None
    cpu: CpuFacts | None = None
    system: SystemFacts | None = None
    environ: dict[VariableName, Text | None] | None = None
    named: dict[VariableName, list[Text] | None] | None = None
    loaded: LoadedFacts | None = None
