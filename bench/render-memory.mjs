// Bytes of one render in a fresh process: `peak`, what resident memory grew by at its peak, or `tensors`, the sum of all
// tensors that nodes put out.
import { readFileSync } from "node:fs";
import { Tensor } from "latentkit";
import { pictureRender } from "./subjects/picture-render.mjs";

const [what, options] = [process.argv[2], JSON.parse(process.argv[3])];

if (what === "peak") {
  const before = process.memoryUsage.rss();
  await pictureRender(options)();
  console.log(peakBytes() - before);
} else {
  const buffers = new Map();
  await pictureRender(options, (event) => {
    if (event.type === "node-done") gather(event.outputs, buffers);
  })();
  console.log([...buffers.values()].reduce((sum, bytes) => sum + bytes, 0));
}

/** The kernel's own mark: getrusage keeps the parent's through a fork. */
function peakBytes() {
  if (process.platform !== "linux") return process.resourceUsage().maxRSS * 1024;
  return Number(/VmHWM:\s*(\d+)/.exec(readFileSync("/proc/self/status", "utf8"))?.[1]) * 1024;
}

function gather(value, buffers, seen = new Set()) {
  if (typeof value !== "object" || value === null || seen.has(value)) return;
  seen.add(value);
  if (value instanceof Tensor) buffers.set(value.data.buffer, value.data.byteLength);
  else if (!ArrayBuffer.isView(value)) for (const inner of Object.values(value)) gather(inner, buffers, seen);
}
