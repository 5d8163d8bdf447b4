"""PyTorch on one thread, as its users write each operation. A subject makes its inputs and returns what is timed."""
try:
    import torch
    import torch.nn.functional as F
except ImportError:
    torch = None

SUBJECTS = {}
VERSIONS = {}


def subject(make):
    SUBJECTS[f"torch.{make.__name__}"] = make
    return make


if torch is not None:
    VERSIONS["torch"] = torch.__version__
    torch.set_num_threads(1)
    torch.set_grad_enabled(False)

    @subject
    def randn(shape):
        generator = torch.Generator()
        return lambda: torch.randn(shape, generator=generator.manual_seed(42))

    @subject
    def scale(shape):
        a = torch.randn(shape)
        return lambda: a * 0.18215

    @subject
    def scaleOut(shape):
        a, out = torch.randn(shape), torch.randn(shape)
        return lambda: torch.mul(a, 0.18215, out=out)

    @subject
    def axpy(shape):
        a, b = torch.randn(shape), torch.randn(shape)
        return lambda: a + b * 0.7

    @subject
    def axpyOut(shape):
        a, b, out = torch.randn(shape), torch.randn(shape), torch.randn(shape)
        return lambda: torch.add(a, b, alpha=0.7, out=out)

    @subject
    def average(shape):
        a, b = torch.randn(shape), torch.randn(shape)
        return lambda: (a + b) / 2

    @subject
    def weightedSum(shape):
        a, b, c = torch.randn(shape), torch.randn(shape), torch.randn(shape)
        return lambda: a * -6.5 + b * 7.5 + c * 0.3

    @subject
    def weightedSumOut(shape):
        a, b, c, out = torch.randn(shape), torch.randn(shape), torch.randn(shape), torch.randn(shape)
        return lambda: torch.mul(a, -6.5, out=out).add_(b, alpha=7.5).add_(c, alpha=0.3)

    @subject
    def blend(shape):
        a, b, mask = torch.randn(shape), torch.randn(shape), torch.rand(shape[0], 1, *shape[2:])
        return lambda: a * mask + b * (1 - mask)

    @subject
    def stdDivide(shape):
        a = torch.randn(shape)
        return lambda: a / a.std()

    def resized(mask, size):
        return F.interpolate(mask, size=(size, size), mode="bilinear", align_corners=False)

    @subject
    def resize(size, to):
        mask = torch.rand(1, 1, size, size)
        return lambda: resized(mask, to)

    @subject
    def resizePicture(size, to, method):
        image = torch.rand(1, size, size, 3)
        return lambda: F.interpolate(image.movedim(-1, 1), size=(to, to), mode=method).movedim(1, -1)

    @subject
    def resizeBlend(shape, size):
        a, b, mask = torch.randn(shape), torch.randn(shape), torch.rand(1, 1, size, size)

        def call():
            m = resized(mask, shape[2])
            return a * m + b * (1 - m)

        return call

    def composed(shape, mask_shape):
        a, b, mask = torch.rand(shape), torch.rand(shape), torch.rand(mask_shape)
        return lambda: a * (1 - mask) + b * mask

    @subject
    def composite(size):
        return composed((1, size, size, 3), (1, size, size, 1))

    @subject
    def compositePlanes(size):
        return composed((1, 3, size, size), (1, 1, size, size))

    @subject
    def imageToMask(size):
        image = torch.rand(1, size, size, 3)
        return lambda: image[..., 0].contiguous()

    @subject
    def toBytes(shape):
        images = torch.rand(shape)
        return lambda: (images * 255.0).clamp(0, 255).to(torch.uint8)

    @subject
    def toBytesOut(shape):
        images = torch.rand(shape)
        floats, out = torch.empty_like(images), torch.empty(shape, dtype=torch.uint8)
        return lambda: out.copy_(torch.mul(images, 255.0, out=floats).clamp_(0, 255))

    @subject
    def karras(steps):
        low, high, rho = 0.0292, 14.6146, 7.0

        def call():
            ramp = torch.linspace(0, 1, steps)
            a, b = low ** (1 / rho), high ** (1 / rho)
            return torch.cat([(b + ramp * (a - b)) ** rho, torch.zeros(1)])

        return call

    @subject
    def normal(steps):
        betas = torch.linspace(0.00085**0.5, 0.012**0.5, 1000, dtype=torch.float64) ** 2
        alphas = torch.cumprod(1 - betas, 0)
        log_sigmas = (((1 - alphas) / alphas) ** 0.5).log().float()

        def call():
            t = torch.linspace(999, 0, steps)
            low, high = t.floor().long(), t.ceil().long()
            w = t - low
            return torch.cat([((1 - w) * log_sigmas[low] + w * log_sigmas[high]).exp(), torch.zeros(1)])

        return call
