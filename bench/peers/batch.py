"""The work of bench/batch.mjs as users of PyTorch and Pillow write it: two processes, one thread each."""
import json
import os
import sys
import time

import numpy as np
import torch
import torch.nn.functional as F
from PIL import Image
from PIL.PngImagePlugin import PngInfo

torch.set_num_threads(1)
torch.set_grad_enabled(False)

folder, items, processes, setting = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), json.loads(sys.argv[4])
factors = torch.tensor(setting["factors"])
bias = torch.tensor(setting["bias"])
prompt = json.dumps(setting["prompt"])


def render(seed):
    shape = (1, 4, 64, 64)
    base = torch.randn(shape, generator=torch.Generator().manual_seed(7)) * setting["sigma"]
    noise = torch.randn(shape, generator=torch.Generator().manual_seed(seed))
    latent = base + noise * 0.4
    latent = latent / latent.std() * setting["scale"]
    rgb = (latent * setting["scaleFactor"]).permute(0, 2, 3, 1) @ factors + bias
    image = F.interpolate(((rgb + 1) / 2).permute(0, 3, 1, 2), scale_factor=8, mode="bilinear").permute(0, 2, 3, 1)
    pixels = np.clip(255.0 * image[0].numpy(), 0, 255).astype(np.uint8)
    text = PngInfo()
    text.add_text("prompt", prompt)
    path = os.path.join(folder, f"torch_{seed:05}_.png")
    Image.fromarray(pixels).save(path, pnginfo=text, compress_level=4)


def work(own):
    for seed in own:
        render(seed)


# warm, then wait for the word, so that neither start nor imports count
render(10**6)
children, ready, go = [], [], os.pipe()
for i in range(processes):
    read, write = os.pipe()
    ready.append(read)
    pid = os.fork()
    if pid == 0:
        render(10**6 + i)
        os.write(write, b"x")
        os.read(go[0], 1)
        work(range(i, items, processes))
        os._exit(0)
    children.append(pid)
for read in ready:
    os.read(read, 1)
started = time.perf_counter()
os.write(go[1], b"x" * processes)
failed = sum(os.waitpid(pid, 0)[1] for pid in children)
print(json.dumps({"seconds": time.perf_counter() - started, "failed": failed}))
