"""The work of bench/photos.mjs as users of PyTorch and Pillow write it: two processes, one thread each."""
import json
import os
import resource
import sys
import time

import numpy as np
import torch
import torch.nn.functional as F
from PIL import Image
from PIL.PngImagePlugin import PngInfo

torch.set_num_threads(1)
torch.set_grad_enabled(False)

photos, folder, processes, setting = sys.argv[1], sys.argv[2], int(sys.argv[3]), json.loads(sys.argv[4])
width, height, radius, sigma, alpha = (setting[key] for key in ("width", "height", "radius", "sigma", "alpha"))
prompt = json.dumps(setting["prompt"])


def kernel():
    x = torch.linspace(-1, 1, 2 * radius + 1)
    y, x = torch.meshgrid(x, x, indexing="ij")
    weights = torch.exp(-(x * x + y * y) / (2 * sigma * sigma))
    weights = weights / weights.sum() * -(alpha * 10)
    weights[radius, radius] = weights[radius, radius] - weights.sum() + 1.0
    return weights.repeat(3, 1, 1).unsqueeze(1)


def render(name):
    with Image.open(os.path.join(photos, name)) as file:
        picture = file.convert("RGB")
    image = torch.from_numpy(np.array(picture).astype(np.float32) / 255.0)[None]
    pixels = np.clip(255.0 * image[0].numpy(), 0, 255).astype(np.uint8)
    small = Image.fromarray(pixels).resize((width, height), resample=Image.Resampling.LANCZOS)
    image = torch.from_numpy(np.array(small).astype(np.float32) / 255.0)[None]
    planes = F.pad(image.permute(0, 3, 1, 2), (radius,) * 4, "reflect")
    sharp = F.conv2d(planes, kernel(), padding=radius, groups=3)[:, :, radius:-radius, radius:-radius]
    image = torch.clamp(sharp.permute(0, 2, 3, 1), 0, 1)
    pixels = np.clip(255.0 * image[0].numpy(), 0, 255).astype(np.uint8)
    text = PngInfo()
    text.add_text("prompt", prompt)
    Image.fromarray(pixels).save(os.path.join(folder, f"torch_{name}"), pnginfo=text, compress_level=4)


def work(own):
    for name in own:
        render(name)


names = sorted(name for name in os.listdir(photos) if name.endswith(".png"))
# warm, then wait for the word, so that neither start nor imports count
render(names[0])
children, ready, go = [], [], os.pipe()
for i in range(processes):
    read, write = os.pipe()
    ready.append(read)
    pid = os.fork()
    if pid == 0:
        render(names[i])
        os.write(write, b"x")
        os.read(go[0], 1)
        work(names[i::processes])
        os._exit(0)
    children.append(pid)
for read in ready:
    os.read(read, 1)
started = time.perf_counter()
os.write(go[1], b"x" * processes)
failed = sum(os.waitpid(pid, 0)[1] for pid in children)
usage = resource.getrusage(resource.RUSAGE_CHILDREN)
cpu = usage.ru_utime + usage.ru_stime
print(json.dumps({"seconds": time.perf_counter() - started, "cpu": cpu, "failed": failed}))
