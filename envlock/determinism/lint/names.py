"""The names the rules look for, canonical (`tf.`, `keras.`, `numpy.`)."""

from __future__ import annotations

SEEDS: dict[str, tuple[str, ...]] = {
    "tf.random.set_seed": ("tf",),
    "tf.random.set_random_seed": ("tf",),
    "tf.set_random_seed": ("tf",),
    "numpy.random.seed": ("numpy",),
    "random.seed": ("python",),
    "keras.utils.set_random_seed": ("tf", "numpy", "python"),
    "transformers.set_seed": ("tf", "numpy", "python"),
    "envlock.activate": ("tf", "numpy", "python"),
}
"""What seeds which generator."""

SWITCH = "tf.config.experimental.enable_op_determinism"
OLD_PATCHES = ("fwr13y.d9m.tensorflow.enable_determinism", "tfdeterminism.patch")
SWITCHES = (SWITCH, "envlock.activate", *OLD_PATCHES)
"""What turns op determinism on."""

SETTERS = frozenset(
    {
        SWITCH,
        *SEEDS,
        *OLD_PATCHES,
        "envlock.assert_locked",
        "keras.backend.set_floatx",
        "keras.config.set_floatx",
        "tf.config.experimental.enable_tensor_float_32_execution",
        "tf.config.experimental.set_memory_growth",
        "tf.config.optimizer.set_experimental_options",
        "tf.config.optimizer.set_jit",
        "tf.config.run_functions_eagerly",
        "tf.config.set_visible_devices",
        "tf.config.threading.set_inter_op_parallelism_threads",
        "tf.config.threading.set_intra_op_parallelism_threads",
        "tf.random.set_global_generator",
    }
)
"""Functions that do something only when they are called."""

TRAINING_NAMES = frozenset({"tf.GradientTape", "tf.gradients"})
TRAINING_METHODS = frozenset({"fit", "fit_generator", "train_on_batch", "minimize", "apply_gradients"})

_SAMPLERS = ("uniform", "normal", "truncated_normal", "gamma", "poisson", "categorical", "shuffle", "multinomial")
_OLD = ("random_uniform", "random_normal", "truncated_normal", "random_gamma", "random_poisson", "random_shuffle")
_IMAGES = ("brightness", "contrast", "crop", "flip_left_right", "flip_up_down", "hue", "jpeg_quality", "saturation")

RANDOM_OPS = frozenset(
    {
        *(f"tf.random.{name}" for name in _SAMPLERS),
        *(f"tf.{name}" for name in (*_OLD, "multinomial", "random_crop")),
        *(f"tf.image.random_{name}" for name in _IMAGES),
        "tf.image.sample_distorted_bounding_box",
        "tf.nn.dropout",
        "tf.nn.experimental.general_dropout",
        "tf.nn.fractional_avg_pool",
        "tf.nn.fractional_max_pool",
    }
)
"""Operations that draw from TensorFlow's own stateful generator."""

OWN_ENTROPY = {
    "tf.random.Generator.from_non_deterministic_state": "Use tf.random.Generator.from_seed(seed).",
    "tf.random.get_global_generator": "Call tf.random.set_global_generator(...from_seed(seed)) before.",
    "tf.raw_ops.NonDeterministicInts": "Do not use it.",
}
"""What takes entropy from the operating system, and what to use instead."""

NEED_OP_SEED = {
    "tf.image.sample_distorted_bounding_box": 2,
    "tf.nn.fractional_avg_pool": 4,
    "tf.nn.fractional_max_pool": 4,
}
"""Operations that pass over the global seed, and the position of their own."""

_DROPOUTS = ("Dropout", "AlphaDropout", "GaussianDropout", "GaussianNoise", "ActivityRegularization")
_SPATIAL = tuple(f"SpatialDropout{n}D" for n in (1, 2, 3))
_AUGMENTING = (
    *("AugMix", "CutMix", "MaxNumBoundingBoxes", "MixUp", "RandAugment", "RandomBrightness", "RandomColorDegeneration"),
    *("RandomColorJitter", "RandomContrast", "RandomCrop", "RandomElasticTransform", "RandomErasing", "RandomFlip"),
    *("RandomGaussianBlur", "RandomGrayscale", "RandomHeight", "RandomHue", "RandomInvert", "RandomPerspective"),
    *("RandomPosterization", "RandomRotation", "RandomSaturation", "RandomSharpness", "RandomShear"),
    *("RandomTranslation", "RandomWidth", "RandomZoom", "RandomApply", "RandomChoice"),
)
RANDOM_LAYERS = frozenset(f"keras.layers.{name}" for name in (*_DROPOUTS[:4], *_SPATIAL, *_AUGMENTING)) - {
    "keras.layers.MaxNumBoundingBoxes"
}
"""Layers that draw random numbers when they are called."""

MODELS = frozenset(
    {"keras.Sequential", "keras.Model", "keras.models.Sequential", "keras.models.Model", "keras.Input", "keras.layers"}
)

NUMPY_OWN = frozenset({"numpy.random.default_rng", "numpy.random.RandomState", "numpy.random.SeedSequence"}) | {
    f"numpy.random.{name}" for name in ("PCG64", "PCG64DXSM", "MT19937", "Philox", "SFC64")
}
"""Generators that take entropy from the operating system when they are given no seed."""
NUMPY_NOT_DRAWN = frozenset({"seed", "get_state", "set_state", "get_bit_generator", "set_bit_generator"})
NUMPY_USERS = {
    "sklearn.model_selection.train_test_split": "random_state",
    "sklearn.utils.shuffle": "random_state",
    "sklearn.utils.resample": "random_state",
    "keras.utils.image_dataset_from_directory": "seed",
    "keras.utils.text_dataset_from_directory": "seed",
    "keras.utils.audio_dataset_from_directory": "seed",
    "keras.preprocessing.image_dataset_from_directory": "seed",
    "keras.preprocessing.text_dataset_from_directory": "seed",
    "keras.preprocessing.timeseries_dataset_from_array": "seed",
    "keras.utils.timeseries_dataset_from_array": "seed",
}
"""What draws from numpy's global generator unless this argument is given."""

PYTHON_DRAWS = frozenset(
    f"random.{name}"
    for name in (
        *("random", "randint", "randrange", "choice", "choices", "shuffle", "sample", "uniform", "triangular"),
        *("gauss", "normalvariate", "lognormvariate", "betavariate", "expovariate", "gammavariate", "vonmisesvariate"),
        *("paretovariate", "weibullvariate", "getrandbits", "randbytes", "binomialvariate"),
    )
)

CLOCKS = frozenset(
    {
        *(f"time.{name}" for name in ("time", "time_ns", "monotonic", "monotonic_ns", "perf_counter", "process_time")),
        *("time.perf_counter_ns", "datetime.datetime.now", "datetime.datetime.utcnow", "datetime.datetime.today"),
        *("os.getpid", "os.urandom", "uuid.uuid1", "uuid.uuid4", "secrets.randbits", "secrets.randbelow"),
        *("secrets.token_bytes", "secrets.token_hex", "threading.get_ident", "random.SystemRandom"),
    }
)
"""What is another value in every run."""

LISTINGS = frozenset({"os.listdir", "os.scandir", "os.walk", "glob.glob", "glob.iglob"})
LISTING_METHODS = frozenset({"iterdir", "rglob", "glob"})

PYTHON_FUNCTIONS = {
    "tf.py_function": 0,
    "tf.numpy_function": 0,
    "tf.py_func": 0,
}

DATASETS = frozenset(
    {
        *("tf.data.TFRecordDataset", "tf.data.TextLineDataset", "tf.data.FixedLengthRecordDataset"),
        *(
            "tf.data.experimental.CsvDataset",
            "tf.data.experimental.make_csv_dataset",
            "tf.data.experimental.SqlDataset",
        ),
        *("tf.data.experimental.RaggedTensorDataset", "tf.data.experimental.RandomDataset"),
        *("tf.data.experimental.sample_from_datasets", "tf.data.experimental.choose_from_datasets"),
        *(name for name in NUMPY_USERS if name.startswith("keras.")),
        "tensorflow_datasets.load",
    }
)
"""Functions that return a dataset, beside `tf.data.Dataset.anything`."""
