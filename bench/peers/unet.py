"""The UNet of a Stable Diffusion 1 checkpoint in PyTorch, float32. Reads a line from stdin for each call, answers with its ms.

Usage: unet.py CHECKPOINT FOLDER THREADS. FOLDER holds x.bin [2, 4, 64, 64] and context.bin [2, 77, 768]; out.bin goes there.
"""
import json
import math
import sys
import time

import torch
import torch.nn.functional as F

PREFIX = "model.diffusion_model."
HEADS = 8
CHANNELS = 320


def read_weights(path):
    weights = {}
    with open(path, "rb") as file:
        length = int.from_bytes(file.read(8), "little")
        header = json.loads(file.read(length))
        for key, entry in header.items():
            if not key.startswith(PREFIX):
                continue
            first, last = entry["data_offsets"]
            file.seek(8 + length + first)
            values = torch.frombuffer(bytearray(file.read(last - first)), dtype=torch.float16)
            weights[key[len(PREFIX):]] = values.to(torch.float32).reshape(entry["shape"])
    return weights


W = read_weights(sys.argv[1])


def conv(key, x, stride=1):
    weight = W[key + ".weight"]
    return F.conv2d(x, weight, W[key + ".bias"], stride=stride, padding=weight.shape[2] // 2)


def linear(key, x):
    return F.linear(x, W[key + ".weight"], W.get(key + ".bias"))


def group_norm(key, x, eps=1e-5):
    return F.group_norm(x, 32, W[key + ".weight"], W[key + ".bias"], eps)


def layer_norm(key, x):
    return F.layer_norm(x, x.shape[-1:], W[key + ".weight"], W[key + ".bias"])


def res_block(key, x, emb):
    h = conv(key + ".in_layers.2", F.silu(group_norm(key + ".in_layers.0", x)))
    h = h + linear(key + ".emb_layers.1", emb)[:, :, None, None]
    h = conv(key + ".out_layers.3", F.silu(group_norm(key + ".out_layers.0", h)))
    return h + (conv(key + ".skip_connection", x) if key + ".skip_connection.weight" in W else x)


def attention(key, x, context):
    q, k, v = linear(key + ".to_q", x), linear(key + ".to_k", context), linear(key + ".to_v", context)
    q, k, v = (t.unflatten(2, (HEADS, -1)).transpose(1, 2) for t in (q, k, v))
    out = F.scaled_dot_product_attention(q, k, v)
    return linear(key + ".to_out.0", out.transpose(1, 2).flatten(2))


def transformer(key, x, context):
    tokens = conv(key + ".proj_in", group_norm(key + ".norm", x, 1e-6)).flatten(2).transpose(1, 2)
    block = key + ".transformer_blocks.0"
    own = layer_norm(block + ".norm1", tokens)
    tokens = tokens + attention(block + ".attn1", own, own)
    tokens = tokens + attention(block + ".attn2", layer_norm(block + ".norm2", tokens), context)
    wide, gate = linear(block + ".ff.net.0.proj", layer_norm(block + ".norm3", tokens)).chunk(2, dim=-1)
    tokens = tokens + linear(block + ".ff.net.2", wide * F.gelu(gate))
    return x + conv(key + ".proj_out", tokens.transpose(1, 2).reshape(x.shape))


def block(key, x, emb, context):
    if key + ".0.op.weight" in W:
        return conv(key + ".0.op", x, stride=2)
    if key + ".0.weight" in W:
        return conv(key + ".0", x)
    x = res_block(key + ".0", x, emb)
    if key + ".1.norm.weight" in W:
        x = transformer(key + ".1", x, context)
    for layer in (key + ".1.conv", key + ".2.conv"):
        if layer + ".weight" in W:
            x = conv(layer, F.interpolate(x, scale_factor=2, mode="nearest"))
    return x


def unet(x, timesteps, context):
    half = CHANNELS // 2
    angles = timesteps[:, None] * torch.exp(-math.log(10000) * torch.arange(half) / half)[None]
    emb = torch.cat([torch.cos(angles), torch.sin(angles)], dim=1)
    emb = F.silu(linear("time_embed.2", F.silu(linear("time_embed.0", emb))))
    skips = []
    for index in range(12):
        x = block(f"input_blocks.{index}", x, emb, context)
        skips.append(x)
    x = res_block("middle_block.0", x, emb)
    x = transformer("middle_block.1", x, context)
    x = res_block("middle_block.2", x, emb)
    for index in range(12):
        x = block(f"output_blocks.{index}", torch.cat([x, skips.pop()], dim=1), emb, context)
    return conv("out.2", F.silu(group_norm("out.0", x)))


def main():
    _, _, folder, threads = sys.argv
    torch.set_num_threads(int(threads))

    def read(name, shape):
        with open(f"{folder}/{name}.bin", "rb") as file:
            return torch.frombuffer(bytearray(file.read()), dtype=torch.float32).reshape(shape)

    x, context = read("x", (2, 4, 64, 64)), read("context", (2, 77, 768))
    timesteps = torch.full((2,), 500.0)
    print(json.dumps({"version": torch.__version__}), flush=True)
    with torch.inference_mode():
        for _ in sys.stdin:
            start = time.perf_counter()
            out = unet(x, timesteps, context)
            ms = 1000 * (time.perf_counter() - start)
            with open(f"{folder}/out.bin", "wb") as file:
                file.write(bytes(out.contiguous().untyped_storage()))
            print(json.dumps({"ms": ms}), flush=True)


main()
