"""numpy, as its users write each operation. A subject makes its inputs and returns what is timed."""
try:
    import numpy as np
except ImportError:
    np = None

SUBJECTS = {}
VERSIONS = {}


def subject(make):
    SUBJECTS[f"numpy.{make.__name__}"] = make
    return make


if np is not None:
    VERSIONS["numpy"] = np.__version__
    random = np.random.default_rng(42)

    def floats(*shape):
        return random.random(shape, dtype=np.float32)

    @subject
    def blend(shape):
        a, b, mask = floats(*shape), floats(*shape), floats(shape[0], 1, *shape[2:])
        return lambda: a * mask + b * (1 - mask)

    @subject
    def stdDivide(shape):
        a = floats(*shape)
        return lambda: a / a.std(ddof=1)

    @subject
    def imageToMask(size):
        image = floats(1, size, size, 3)
        return lambda: np.ascontiguousarray(image[..., 0])
