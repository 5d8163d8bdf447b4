"""PyTorch eager on a card, as its users write each operation. A subject makes its inputs and returns what is timed, the
wait for the card included; `device` is "cuda", or "cpu" to try the program alone."""
try:
    import torch
    import torch.nn.functional as F
except ImportError:
    torch = None

SUBJECTS = {}


def subject(make):
    SUBJECTS[f"cuda.{make.__name__}"] = make
    return make


def wait(device):
    if device == "cuda":
        torch.cuda.synchronize()


def floats(n, count, device):
    return [torch.randn(n, device=device) for _ in range(count)]


def queued(call, repeats, device):
    """Many launches and one wait, so that neither is what is measured."""

    def run():
        for _ in range(repeats):
            call()
        wait(device)

    return run


if torch is not None:

    @subject
    def copy(n, repeats, device):
        out, a = floats(n, 2, device)
        return queued(lambda: out.copy_(a), repeats, device)

    @subject
    def scale(n, repeats, device):
        out, a = floats(n, 2, device)
        return queued(lambda: torch.mul(a, 0.18215, out=out), repeats, device)

    @subject
    def axpy(n, repeats, device):
        out, a, b = floats(n, 3, device)
        return queued(lambda: torch.add(a, b, alpha=0.7, out=out), repeats, device)

    @subject
    def average(n, repeats, device):
        out, a, b = floats(n, 3, device)
        return queued(lambda: torch.add(a, b, out=out).mul_(0.5), repeats, device)

    @subject
    def lerp(n, repeats, device):
        out, a, b = floats(n, 3, device)
        return queued(lambda: torch.lerp(a, b, 0.3, out=out), repeats, device)

    @subject
    def blend(n, repeats, device):
        a, b, mask = floats(n, 3, device)
        return queued(lambda: mask * a + (1.0 - mask) * b, repeats, device)

    @subject
    def chain(shape, mask, device):
        """latentNoisy, then injectNoise with a mask, normalize and a mix, as nodes written with PyTorch do."""
        base = torch.randn(shape, device=device)
        masks = torch.rand(1, 1, mask, mask, device=device)
        sigma, strength, mix = 14.6146, 0.7, 0.3
        length = (mix**2 + (1 - mix) ** 2) ** 0.5
        noise = torch.Generator(device=device)
        others = torch.Generator(device=device)

        def call():
            noisy = torch.randn(shape, generator=noise.manual_seed(42), device=device) * sigma
            samples = base + noisy * strength
            samples = samples / samples.std()
            m = F.interpolate(masks, size=shape[2:], mode="bilinear", align_corners=False)
            samples = m * samples + (1 - m) * base
            random = torch.randn(shape, generator=others.manual_seed(43), device=device)
            samples = ((1 - mix) * samples + mix * random) / length
            wait(device)
            return samples

        return call
