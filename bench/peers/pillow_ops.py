"""Pillow, and the way from float images to its PNG files. A subject reads its picture and returns what is timed."""
import io

try:
    import numpy as np
    import PIL
    from PIL import Image, features
except ImportError:
    PIL = None

SUBJECTS = {}
VERSIONS = {}


def subject(make):
    SUBJECTS[f"pillow.{make.__name__}"] = make
    return make


if PIL is not None:
    VERSIONS["pillow"] = f"{PIL.__version__} (zlib {features.version('zlib')})"

    def encode(image, level):
        file = io.BytesIO()
        image.save(file, "PNG", compress_level=level)
        return file.getvalue()

    def pixels(file, size):
        return np.fromfile(file, np.uint8).reshape(size, size, 3)

    @subject
    def encodePng(file, size, level):
        image = Image.fromarray(pixels(file, size))
        return lambda: encode(image, level)

    @subject
    def pngBytes(file, size, level):
        image = Image.fromarray(pixels(file, size))
        return lambda: len(encode(image, level))

    @subject
    def decodePng(file):
        with open(file, "rb") as opened:
            data = opened.read()
        return lambda: np.asarray(Image.open(io.BytesIO(data)).convert("RGB"))

    @subject
    def encodeFloats(file, size, level, count):
        image = pixels(file, size).astype(np.float32) / 255

        def call():
            for _ in range(count):
                encode(Image.fromarray(np.clip(255.0 * image, 0, 255).astype(np.uint8)), level)

        return call

    @subject
    def resizePicture(size, to, method):
        image = np.random.rand(size, size, 3).astype(np.float32)

        def call():
            pixels = Image.fromarray(np.clip(255.0 * image, 0, 255).astype(np.uint8))
            return np.asarray(pixels.resize((to, to), Image.Resampling.LANCZOS)).astype(np.float32) / 255.0

        return call

    @subject
    def resizeBytes(size, to, method):
        pixels = Image.fromarray((255 * np.random.rand(size, size, 3)).astype(np.uint8))
        return lambda: pixels.resize((to, to), Image.Resampling.LANCZOS)
