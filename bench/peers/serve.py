"""The Python peers as a process that is timed: reads requests of bench/client.mjs and writes replies, one JSON line each."""
import gc
import json
import sys
import time
import traceback

import cuda_ops
import numpy_ops
import pillow_ops
import sampling_ops
import torch_ops

BATCH_MS = 0.1
SLOW_MS = 5
FIRST_WARM_UP_MS = 40

SUBJECTS = {}
VERSIONS = {}
for peer in (torch_ops, numpy_ops, pillow_ops):
    SUBJECTS.update(peer.SUBJECTS)
    VERSIONS.update(peer.VERSIONS)
SUBJECTS.update(cuda_ops.SUBJECTS)
SUBJECTS.update(sampling_ops.SUBJECTS)

now = lambda: time.perf_counter() * 1e3


def repeat(call, times):
    for _ in range(times):
        call()


def plan(call):
    """Warms up; the size of a batch that the clock can measure, and whether one call is slow."""
    began, calls = now(), 0
    while calls < 2 or now() - began < FIRST_WARM_UP_MS:
        start = now()
        call()
        one = now() - start
        calls += 1
        if calls > 1 and one > SLOW_MS:
            break
    size, took = 1, one
    while took < BATCH_MS:
        size *= 2
        start = now()
        repeat(call, size)
        took = now() - start
    return size, one > SLOW_MS


def times_of(call, size, is_slow, ms):
    if not is_slow:
        repeat(call, size)
    times, end = [], now() + ms
    while not times or now() < end:
        start = now()
        repeat(call, size)
        times.append((now() - start) / size)
    return times


prepared = {}


def handle(request):
    mode = request["mode"]
    if mode == "versions":
        return {"versions": VERSIONS}
    if mode == "forget":
        prepared.clear()
        gc.collect()
        return {}
    make = SUBJECTS.get(request["subject"])
    if make is None:
        return {"missing": True}
    key = json.dumps([request["subject"], request["args"]])
    if key not in prepared:
        call = make(**request["args"])
        prepared[key] = (call, None if mode == "value" else plan(call))
    call, planned = prepared[key]
    return {"values": [call()] if mode == "value" else times_of(call, *planned, request["ms"])}


# as timeit does: a collection in the middle is not the operation's
gc.disable()
for line in sys.stdin:
    try:
        reply = handle(json.loads(line))
    except Exception:
        reply = {"error": traceback.format_exc()}
    print(json.dumps(reply), flush=True)
