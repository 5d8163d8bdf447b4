"""torch.randn on a card: python3 torch_noise.py DEVICE FILE. Reads [{seed, counts}] from stdin, a seed and the sizes of
the calls that follow it; writes all values as float32, and prints the grid and each seed's offset at the end as JSON.
Ends with 3 where there is no PyTorch, or no such device."""
import json
import sys

try:
    import torch
except ImportError:
    sys.stderr.write("PyTorch is not installed.")
    sys.exit(3)

device, file = sys.argv[1:]
if device == "cuda" and not torch.cuda.is_available():
    sys.stderr.write(f"PyTorch {torch.__version__} sees no CUDA device.")
    sys.exit(3)

BLOCK = 256


def grid():
    """Threads of PyTorch's largest launch: blocks that are resident at once."""
    if device != "cuda":
        return 270336
    card = torch.cuda.get_device_properties(0)
    return card.multi_processor_count * (card.max_threads_per_multi_processor // BLOCK) * BLOCK


generator = torch.Generator(device=device)
offsets = []
with open(file, "wb") as values:
    for draw in json.load(sys.stdin):
        seed = int(draw["seed"])
        generator.manual_seed(seed)
        for count in draw["counts"]:
            drawn = torch.randn(count, generator=generator, device=device).cpu()
            values.write(drawn.numpy().tobytes())
        # not in every version
        offset = getattr(generator, "get_offset", None)
        offsets.append(str(offset()) if offset is not None and device == "cuda" else None)

print(json.dumps({"version": torch.__version__, "threads": grid(), "offsets": offsets}))
