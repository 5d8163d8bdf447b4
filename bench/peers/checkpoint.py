"""UNet and VAE decoder of a Stable Diffusion 1 checkpoint in PyTorch.

Usage: checkpoint.py CHECKPOINT FOLDER THREADS CELLS TYPE. Reads a line "unet" or "vae" from stdin for each call and answers
with its ms. FOLDER holds x.bin [2, 4, CELLS, CELLS], context.bin [2, 77, 768] and z.bin [1, 4, CELLS, CELLS] as float32;
out.bin goes there. TYPE is float32 or bfloat16.
"""
import json
import math
import sys
import time

import torch
import torch.nn.functional as F

PREFIXES = ("model.diffusion_model.", "first_stage_model.")
TYPE = getattr(torch, sys.argv[5])
HEADS = 8
CHANNELS = 320


def read_weights(path):
    weights = {}
    with open(path, "rb") as file:
        length = int.from_bytes(file.read(8), "little")
        header = json.loads(file.read(length))
        for key, entry in header.items():
            prefix = next((prefix for prefix in PREFIXES if key.startswith(prefix)), None)
            if prefix is None:
                continue
            first, last = entry["data_offsets"]
            file.seek(8 + length + first)
            values = torch.frombuffer(bytearray(file.read(last - first)), dtype=torch.float16)
            weights[key[len(prefix):]] = values.to(TYPE).reshape(entry["shape"])
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
    emb = torch.cat([torch.cos(angles), torch.sin(angles)], dim=1).to(TYPE)
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


def vae_res_block(key, x):
    h = conv(key + ".conv1", F.silu(group_norm(key + ".norm1", x, 1e-6)))
    h = conv(key + ".conv2", F.silu(group_norm(key + ".norm2", h, 1e-6)))
    return h + (conv(key + ".nin_shortcut", x) if key + ".nin_shortcut.weight" in W else x)


def vae_attention(key, x):
    normal = group_norm(key + ".norm", x, 1e-6)
    q, k, v = (conv(f"{key}.{name}", normal).flatten(2).transpose(1, 2)[:, None] for name in "qkv")
    out = F.scaled_dot_product_attention(q, k, v)[:, 0].transpose(1, 2).reshape(x.shape)
    return x + conv(key + ".proj_out", out)


def vae_decode(z):
    x = conv("decoder.conv_in", conv("post_quant_conv", z))
    x = vae_res_block("decoder.mid.block_1", x)
    x = vae_res_block("decoder.mid.block_2", vae_attention("decoder.mid.attn_1", x))
    for level in (3, 2, 1, 0):
        for index in range(3):
            x = vae_res_block(f"decoder.up.{level}.block.{index}", x)
        if level > 0:
            x = conv(f"decoder.up.{level}.upsample.conv", F.interpolate(x, scale_factor=2, mode="nearest"))
    image = conv("decoder.conv_out", F.silu(group_norm("decoder.norm_out", x, 1e-6)))
    return (image / 2 + 0.5).clamp(0, 1).permute(0, 2, 3, 1)


def main():
    _, _, folder, threads, cells, _ = sys.argv
    torch.set_num_threads(int(threads))
    side = int(cells)

    def read(name, shape):
        with open(f"{folder}/{name}.bin", "rb") as file:
            return torch.frombuffer(bytearray(file.read()), dtype=torch.float32).reshape(shape)

    x, context, z = read("x", (2, 4, side, side)), read("context", (2, 77, 768)), read("z", (1, 4, side, side))
    timesteps = torch.full((2,), 500.0)
    works = {
        "unet": lambda: unet(x.to(TYPE), timesteps, context.to(TYPE)),
        "vae": lambda: vae_decode(z.to(TYPE)),
    }
    print(json.dumps({"version": torch.__version__}), flush=True)
    with torch.inference_mode():
        for line in sys.stdin:
            start = time.perf_counter()
            out = works[line.strip()]()
            ms = 1000 * (time.perf_counter() - start)
            with open(f"{folder}/out.bin", "wb") as file:
                file.write(out.to(torch.float32).contiguous().numpy().tobytes())
            print(json.dumps({"ms": ms}), flush=True)


main()
