# The same sizes in PyTorch eager on the card, for the ratio. Prints a line of JSON for each result.
import json, sys, time
import torch
import torch.nn as nn
import torch.nn.functional as F

quick = "--quick" in sys.argv
device = "cpu" if quick else "cuda"
torch.backends.cuda.matmul.allow_tf32 = False
torch.backends.cudnn.allow_tf32 = False
torch.set_grad_enabled(False)


def sync():
    if device == "cuda":
        torch.cuda.synchronize()


def timed(name, call, times=20, **more):
    try:
        if device == "cuda":
            torch.cuda.reset_peak_memory_stats()
        for _ in range(3):
            call()
        sync()
        all_ms = []
        for _ in range(2 if quick else times):
            began = time.perf_counter()
            call()
            sync()
            all_ms.append(1000 * (time.perf_counter() - began))
        all_ms.sort()
        row = {"name": name, "medianMs": round(all_ms[len(all_ms) // 2], 4), "minMs": round(all_ms[0], 4), **more}
        if device == "cuda":
            row["memoryMiB"] = torch.cuda.max_memory_allocated() // 2**20
    except Exception as error:  # the next measurement follows
        row = {"name": name, "error": str(error)[:300]}
    print(json.dumps(row), flush=True)


class Res(nn.Module):
    def __init__(self, cin, cout, emb):
        super().__init__()
        self.n1, self.c1 = nn.GroupNorm(32, cin), nn.Conv2d(cin, cout, 3, padding=1)
        self.e = nn.Linear(emb, cout)
        self.n2, self.c2 = nn.GroupNorm(32, cout), nn.Conv2d(cout, cout, 3, padding=1)
        self.skip = nn.Conv2d(cin, cout, 1) if cin != cout else nn.Identity()

    def forward(self, x, emb):
        h = self.c1(F.silu(self.n1(x))) + self.e(emb)[:, :, None, None]
        return self.skip(x) + self.c2(F.silu(self.n2(h)))


class Attention(nn.Module):
    def __init__(self, c, ctx, heads):
        super().__init__()
        self.q, self.k, self.v = nn.Linear(c, c, bias=False), nn.Linear(ctx, c, bias=False), nn.Linear(ctx, c, bias=False)
        self.o, self.heads = nn.Linear(c, c), heads

    def forward(self, x, context):
        q, k, v = (t.unflatten(-1, (self.heads, -1)).transpose(1, 2) for t in (self.q(x), self.k(context), self.v(context)))
        return self.o(F.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2))


class Block(nn.Module):
    def __init__(self, c, ctx, heads):
        super().__init__()
        self.n1, self.n2, self.n3 = nn.LayerNorm(c), nn.LayerNorm(c), nn.LayerNorm(c)
        self.a1, self.a2 = Attention(c, c, heads), Attention(c, ctx, heads)
        self.up, self.down = nn.Linear(c, 8 * c), nn.Linear(4 * c, c)

    def forward(self, x, context):
        n = self.n1(x)
        x = x + self.a1(n, n)
        x = x + self.a2(self.n2(x), context)
        a, gate = self.up(self.n3(x)).chunk(2, -1)
        return x + self.down(a * F.gelu(gate))


class Transformer(nn.Module):
    def __init__(self, c, depth, ctx, heads):
        super().__init__()
        self.n, self.i, self.o = nn.GroupNorm(32, c), nn.Linear(c, c), nn.Linear(c, c)
        self.blocks = nn.ModuleList(Block(c, ctx, heads) for _ in range(depth))

    def forward(self, x, context):
        h, w = x.shape[2:]
        t = self.i(self.n(x).flatten(2).transpose(1, 2))
        for block in self.blocks:
            t = block(t, context)
        return x + self.o(t).transpose(1, 2).unflatten(2, (h, w))


class UNet(nn.Module):
    """320 channels, two blocks a level, as make-full-size-model.mjs writes it."""

    def __init__(self, depths, multiples, ctx, heads, label=0, base=320):
        super().__init__()
        emb = 4 * base
        self.base, self.time = base, nn.Sequential(nn.Linear(base, emb), nn.SiLU(), nn.Linear(emb, emb))
        self.label = nn.Sequential(nn.Linear(label, emb), nn.SiLU(), nn.Linear(emb, emb)) if label else None
        count = lambda c: heads if heads > 0 else c // -heads
        self.first = nn.Conv2d(4, base, 3, padding=1)
        down, skips, c = [], [base], base
        for level, (depth, multiple) in enumerate(zip(depths, multiples)):
            for _ in range(2):
                out = base * multiple
                down.append(nn.ModuleList([Res(c, out, emb), Transformer(out, depth, ctx, count(out)) if depth else None]))
                c = out
                skips.append(c)
            if level < len(depths) - 1:
                down.append(nn.ModuleList([nn.Conv2d(c, c, 3, stride=2, padding=1)]))
                skips.append(c)
        self.down = nn.ModuleList(down)
        self.middle = nn.ModuleList([Res(c, c, emb), Transformer(c, max(1, depths[-1]), ctx, count(c)), Res(c, c, emb)])
        up = []
        for level in reversed(range(len(depths))):
            for block in range(3):
                out = base * multiples[level]
                parts = [Res(c + skips.pop(), out, emb), Transformer(out, depths[level], ctx, count(out)) if depths[level] else None]
                parts.append(nn.Conv2d(out, out, 3, padding=1) if block == 2 and level > 0 else None)
                up.append(nn.ModuleList(parts))
                c = out
        self.up = nn.ModuleList(up)
        self.n, self.last = nn.GroupNorm(32, base), nn.Conv2d(base, 4, 3, padding=1)

    def forward(self, x, sines, context, y=None):
        emb = self.time(sines)
        if y is not None:
            emb = emb + self.label(y)
        emb = F.silu(emb)
        x = self.first(x)
        skips = [x]
        for parts in self.down:
            if isinstance(parts[0], nn.Conv2d):
                x = parts[0](x)
            else:
                x = parts[0](x, emb)
                if parts[1] is not None:
                    x = parts[1](x, context)
            skips.append(x)
        x = self.middle[2](self.middle[1](self.middle[0](x, emb), context), emb)
        for res, transformer, conv in self.up:
            x = res(torch.cat([x, skips.pop()], 1), emb)
            if transformer is not None:
                x = transformer(x, context)
            if conv is not None:
                x = conv(F.interpolate(x, scale_factor=2.0, mode="nearest"))
        return self.last(F.silu(self.n(x)))


class Decoder(nn.Module):
    """VAE decoder: 128 channels times 1, 2, 4, 4, three blocks a level; the middle with one head of 512."""

    def __init__(self):
        super().__init__()
        c = 512
        self.first = nn.Conv2d(4, c, 3, padding=1)
        self.m1, self.m2, self.n, self.a = Res(c, c, 1), Res(c, c, 1), nn.GroupNorm(32, c), Attention(c, c, 1)
        blocks = []
        for level, out in enumerate((512, 512, 256, 128)):
            for _ in range(3):
                blocks.append(Res(c, out, 1))
                c = out
            if level < 3:
                blocks.append(nn.Conv2d(c, c, 3, padding=1))
        self.blocks = nn.ModuleList(blocks)
        self.out_n, self.out = nn.GroupNorm(32, c), nn.Conv2d(c, 3, 3, padding=1)

    def forward(self, z):
        emb = z.new_zeros(z.shape[0], 1)
        x = self.m1(self.first(z), emb)
        h, w = x.shape[2:]
        t = self.n(x).flatten(2).transpose(1, 2)
        x = self.m2(x + self.a(t, t).transpose(1, 2).unflatten(2, (h, w)), emb)
        for block in self.blocks:
            x = block(x, emb) if isinstance(block, Res) else block(F.interpolate(x, scale_factor=2.0, mode="nearest"))
        return self.out(F.silu(self.out_n(x)))


n = 64 if quick else 4096
for dtype in (torch.float32,) if quick else (torch.float16, torch.float32):
    kind = str(dtype)[6:]
    r = lambda *shape: torch.randn(*shape, device=device, dtype=dtype)
    a, b = r(n, n), r(n, n)
    timed(f"matmul {n} {kind}", lambda: a @ b)
    x, w = (r(2, 32, 8, 8), r(32, 32, 3, 3)) if quick else (r(2, 320, 64, 64), r(320, 320, 3, 3))
    timed(f"conv 320x64 {kind}", lambda: F.conv2d(x, w, padding=1))
    x5, w5 = (x, w) if quick else (r(1, 512, 256, 256), r(512, 512, 3, 3))
    timed(f"conv 512x256 {kind}", lambda: F.conv2d(x5, w5, padding=1))
    q = r(2, 8, n, 40)
    timed(f"attention {n}x8x40 {kind}", lambda: F.scaled_dot_product_attention(q, q, q))
    x8, w8 = r(2 * n, 320), r(320, 320)
    timed(f"matmul 8192x320 {kind}", lambda: x8 @ w8)
    with torch.device(device):
        if quick:
            unet, side, ctx = UNet([1, 0], [1, 2], 32, 4, base=32).to(dtype), 8, 32
        else:
            unet, side, ctx = UNet([1, 1, 1, 0], [1, 2, 4, 4], 768, 8).to(dtype), 64, 768
        args = (r(2, 4, side, side), r(2, unet.base), r(2, 77, ctx))
        timed(f"unet sd1 {side} {kind}", lambda: unet(*args), 10, parameters=sum(p.numel() for p in unet.parameters()))
        del unet
        decoder = Decoder().to(dtype)
        for side in (4,) if quick else (64, 128):
            z = r(1, 4, side, side)
            timed(f"vae {8 * side} {kind}", lambda: decoder(z), 5)
        del decoder
        if not quick and dtype == torch.float16:
            unet = UNet([0, 2, 10], [1, 2, 4], 2048, -64, label=2816).to(dtype)
            args = (r(2, 4, 128, 128), r(2, 320), r(2, 77, 2048), r(2, 2816))
            timed(f"unet sdxl 128 {kind}", lambda: unet(*args), 5, parameters=sum(p.numel() for p in unet.parameters()))
            del unet
    if device == "cuda":
        torch.cuda.empty_cache()
