"""k-diffusion's samplers in PyTorch on one thread, around a denoiser that costs nothing."""
import math
from collections import OrderedDict

try:
    import numpy
    import torch
except ImportError:
    torch = None

SUBJECTS = {}
STEPS = 20
CFG = 7.0
LOW, HIGH, RHO = 0.0291675, 14.614642, 7.0


def karras():
    ramp = torch.linspace(0, 1, STEPS)
    a, b = LOW ** (1 / RHO), HIGH ** (1 / RHO)
    return torch.cat([(b + ramp * (a - b)) ** RHO, torch.zeros(1)])


class Brownian:
    """One path, as torchsde's BrownianTree: a binary tree of times with its last 45 increments."""

    CACHED = 45

    def __init__(self, low, high, shape, seed):
        self.shape, self.seed = shape, seed
        self.low, self.high = round(low, 6), round(high, 6)
        self.whole = self.normals((), False) * math.sqrt(high - low)
        self.cache = OrderedDict()

    def normals(self, key, has_key=True):
        sequence = numpy.random.SeedSequence(self.seed, spawn_key=key if has_key else (), pool_size=24)
        generator = torch.Generator()
        generator.manual_seed(int(sequence.generate_state(1)[0]))
        return torch.randn(self.shape, generator=generator)

    def halves(self, node, increment):
        """The increments of a node's halves; node is (start, end, key, depth)."""
        if node in self.cache:
            self.cache.move_to_end(node)
            return self.cache[node]
        start, end, key, depth = node
        middle = round((start + end) / 2, 6)
        reciprocal = 1 / (end - start)
        spread = math.sqrt((middle - start) * (end - middle) * reciprocal)
        left = (middle - start) * increment * reciprocal + spread * self.normals((key, depth))
        self.cache[node] = left, increment - left
        if len(self.cache) > self.CACHED:
            self.cache.popitem(last=False)
        return self.cache[node]

    def between(self, node, increment, a, b):
        start, end, key, depth = node
        if a == start and b == end:
            return increment
        middle = round((start + end) / 2, 6)
        left, right = self.halves(node, increment)
        first, second = (start, middle, 2 * key, depth + 1), (middle, end, 2 * key + 1, depth + 1)
        if b <= middle:
            return self.between(first, left, a, b)
        if a >= middle:
            return self.between(second, right, a, b)
        return self.between(first, left, a, middle) + self.between(second, right, middle, b)

    def __call__(self, sigma, sigma_next):
        a, b = sorted(min(max(round(float(s), 6), self.low), self.high) for s in (sigma, sigma_next))
        increment = self.between((self.low, self.high, 0, 0), self.whole, a, b)
        return -increment / (sigma_next - sigma).abs().sqrt()


def euler(model, x, sigmas):
    ones = x.new_ones([x.shape[0]])
    for i in range(len(sigmas) - 1):
        denoised = model(x, sigmas[i] * ones)
        d = (x - denoised) / sigmas[i]
        x = x + d * (sigmas[i + 1] - sigmas[i])
    return x


def dpmpp_2m(model, x, sigmas):
    ones = x.new_ones([x.shape[0]])
    old = None
    for i in range(len(sigmas) - 1):
        denoised = model(x, sigmas[i] * ones)
        t, t_next = -sigmas[i].log(), -sigmas[i + 1].log()
        h = t_next - t
        if old is None or sigmas[i + 1] == 0:
            x = (t_next.neg().exp() / t.neg().exp()) * x - (-h).expm1() * denoised
        else:
            r = (t + sigmas[i - 1].log()) / h
            mixed = (1 + 1 / (2 * r)) * denoised - (1 / (2 * r)) * old
            x = (t_next.neg().exp() / t.neg().exp()) * x - (-h).expm1() * mixed
        old = denoised
    return x


def dpmpp_2m_sde(model, x, sigmas):
    ones = x.new_ones([x.shape[0]])
    noise = Brownian(float(sigmas[sigmas > 0].min()), float(sigmas.max()), x.shape, 42)
    old = h_last = None
    for i in range(len(sigmas) - 1):
        denoised = model(x, sigmas[i] * ones)
        if sigmas[i + 1] == 0:
            x = denoised
        else:
            t, s = -sigmas[i].log(), -sigmas[i + 1].log()
            h = s - t
            x = sigmas[i + 1] / sigmas[i] * (-h).exp() * x + (-2 * h).expm1().neg() * denoised
            if old is not None:
                r = h_last / h
                x = x + 0.5 * (-2 * h).expm1().neg() * (1 / r) * (denoised - old)
            x = x + noise(sigmas[i], sigmas[i + 1]) * sigmas[i + 1] * (-2 * h).expm1().neg().sqrt()
            h_last = h
        old = denoised
    return x


def dpmpp_sde(model, x, sigmas):
    ones = x.new_ones([x.shape[0]])
    noise = Brownian(float(sigmas[sigmas > 0].min()), float(sigmas.max()), x.shape, 42)

    def ancestral(sigma, sigma_next):
        up = min(sigma_next, (sigma_next**2 * (sigma**2 - sigma_next**2) / sigma**2) ** 0.5)
        return (sigma_next**2 - up**2) ** 0.5, up

    for i in range(len(sigmas) - 1):
        denoised = model(x, sigmas[i] * ones)
        if sigmas[i + 1] == 0:
            x = x + (x - denoised) / sigmas[i] * (sigmas[i + 1] - sigmas[i])
            continue
        t, t_next = -sigmas[i].log(), -sigmas[i + 1].log()
        middle = (-(t + (t_next - t) * 0.5)).exp()
        down, up = ancestral(sigmas[i], middle)
        s = -down.log()
        x_2 = ((-s).exp() / (-t).exp()) * x - (t - s).expm1() * denoised
        x_2 = x_2 + noise(sigmas[i], middle) * up
        denoised_2 = model(x_2, middle * ones)
        down, up = ancestral(sigmas[i], sigmas[i + 1])
        t_down = -down.log()
        # weights of the two estimates at the middle of a step: 0 and 1
        mixed = (1 - 1 / (2 * 0.5)) * denoised + 1 / (2 * 0.5) * denoised_2
        x = ((-t_down).exp() / (-t).exp()) * x - (t - t_down).expm1() * mixed
        x = x + noise(sigmas[i], sigmas[i + 1]) * up
    return x


if torch is not None:
    SAMPLERS = {f.__name__: f for f in (euler, dpmpp_2m, dpmpp_2m_sde, dpmpp_sde)}

    def guided(both, rescale):
        """A model of both sides as one batch under guidance."""

        def model(x, sigma):
            cond, uncond = both(torch.cat([x] * 2), torch.cat([sigma] * 2)).chunk(2)
            if rescale is None:
                return uncond + (cond - uncond) * CFG
            scaled = x / (sigma.view(-1, 1, 1, 1) ** 2 + 1)
            v_cond, v_uncond = scaled - cond, scaled - uncond
            v = v_uncond + (v_cond - v_uncond) * CFG
            shrunk = v * (v_cond.std(dim=(1, 2, 3), keepdim=True) / v.std(dim=(1, 2, 3), keepdim=True))
            return scaled - (rescale * shrunk + (1 - rescale) * v)

        return model

    def sampling(shape, sampler, rescale=None):
        estimate = torch.full([2 * shape[0], *shape[1:]], 0.1)
        model = guided(lambda x, sigma: estimate, rescale)

        def call():
            sigmas = karras()
            noise = torch.randn(shape, generator=torch.Generator().manual_seed(42))
            return SAMPLERS[sampler](model, noise * sigmas[0], sigmas)

        return call

    SUBJECTS["torch.sampling"] = sampling
