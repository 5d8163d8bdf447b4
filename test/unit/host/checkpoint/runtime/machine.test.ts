import assert from "node:assert/strict";
import { mkdirSync, writeFileSync } from "node:fs";
import { availableParallelism } from "node:os";
import { dirname, join } from "node:path";
import { coreCount, freeMemory } from "#src/host/checkpoint/runtime/machine.js";
import { temporaryFolder } from "../../../../helpers/folders.js";

const onLinux = process.platform === "linux" ? describe : describe.skip;

onLinux("freeMemory", () => {
  const folder = temporaryFolder();
  const write = (files: Record<string, string>) => {
    for (const [path, text] of Object.entries(files)) {
      mkdirSync(dirname(join(folder(), path)), { recursive: true });
      writeFileSync(join(folder(), path), text);
    }
    return freeMemory(folder());
  };
  const meminfo = "MemTotal:  9000 kB\nMemFree:  10 kB\nMemAvailable:  8000 kB\n";

  it("is the system's available memory without a control group", () => {
    assert.equal(write({ "proc/meminfo": meminfo }), 8000 * 1024);
  });

  it("is what the limit of a group of version 2 leaves, its inactive pages of files not counted", () => {
    const free = write({
      "proc/meminfo": meminfo,
      "proc/self/cgroup": "0::/a/b\n",
      "sys/fs/cgroup/a/b/memory.max": "max\n",
      "sys/fs/cgroup/a/b/memory.current": "100\n",
      "sys/fs/cgroup/a/memory.max": "5000\n",
      "sys/fs/cgroup/a/memory.current": "3000\n",
      "sys/fs/cgroup/a/memory.stat": "anon 2000\ninactive_file 700\n",
    });
    assert.equal(free, 5000 - 3000 + 700);
  });

  it("is what the limit of a group of version 1 leaves, found at the root of a container", () => {
    const free = write({
      "proc/meminfo": meminfo,
      "proc/self/cgroup": "5:cpu:/x\n4:memory:/outside/of/the/container\n",
      "sys/fs/cgroup/memory/memory.limit_in_bytes": "6000\n",
      "sys/fs/cgroup/memory/memory.usage_in_bytes": "5000\n",
      "sys/fs/cgroup/memory/memory.stat": "inactive_file 1\ntotal_inactive_file 400\n",
    });
    assert.equal(free, 1400);
  });

  it("is 0 for a group above its limit", () => {
    const free = write({
      "proc/meminfo": meminfo,
      "proc/self/cgroup": "0::/\n",
      "sys/fs/cgroup/memory.max": "10\n",
      "sys/fs/cgroup/memory.current": "11\n",
    });
    assert.equal(free, 0);
  });

  it("is a number on this machine", () => {
    assert.ok(freeMemory() > 2 ** 20);
  });
});

describe("coreCount", () => {
  const folder = temporaryFolder();

  it("is the number of processors if the system does not tell their cores", () => {
    assert.equal(coreCount(folder()), availableParallelism());
  });

  it("is between 1 and the number of processors", () => {
    const count = coreCount();
    assert.ok(count >= 1 && count <= availableParallelism(), String(count));
  });
});
