// Delay of the caller's event loop while one picture is rendered: node bench/event-loop.mjs [SIZE [RENDERS]]. Idle, by a
// renderer into files and into memory, and by render() for comparison. "own" is the longest work of the loop's own thread
// between two timers of 1 ms, in processor time (Linux); the rest of a delay is waiting for a processor.
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { monitorEventLoopDelay } from "node:perf_hooks";
import { setTimeout as sleep } from "node:timers/promises";
import { createRenderer, render } from "latentkit";
import { graphOf } from "./subjects/picture-render.mjs";

const [size, renders] = [Number(process.argv[2] ?? 4096), Number(process.argv[3] ?? 3)];
const outputDir = mkdtempSync(join(tmpdir(), "latentkit-bench-"));
const renderer = createRenderer({ threads: 1, outputDir });
const graph = graphOf(size, 1);

/** @param {string} name @param {() => Promise<{ status: string } | void>} work */
async function measure(name, work) {
  await sleep(100);
  const delay = monitorEventLoopDelay({ resolution: 1 });
  const began = performance.now();
  let [last, own] = [threadMs(), 0];
  const timer = setInterval(() => {
    const now = threadMs();
    own = Math.max(own, now - last);
    last = now;
  }, 1);
  delay.enable();
  const status = (await work())?.status ?? "success";
  delay.disable();
  clearInterval(timer);
  own = Math.max(own, threadMs() - last);
  if (status !== "success") throw new Error(`${name}: ${status}`);
  const [most, p99] = [delay.max, delay.percentile(99)].map((ns) => (ns / 1e6).toFixed(1).padStart(7));
  const ms = (performance.now() - began).toFixed(0).padStart(6);
  console.log(
    `${name.padEnd(20)} ${ms} ms, event loop at most ${most} ms, 99 % under ${p99} ms, own ${own.toFixed(1).padStart(5)} ms`,
  );
}

/** Processor time of this thread in milliseconds; NaN if the system does not tell. */
function threadMs() {
  return process.platform === "linux"
    ? Number(readFileSync(`/proc/self/task/${process.pid}/schedstat`, "utf8").split(" ")[0]) / 1e6
    : Number.NaN;
}

try {
  // the thread starts and its picture's parts are computed once
  await renderer.render({ graph: graphOf(64, 1) });
  await measure("idle", () => sleep(1000));
  for (let i = 0; i < renders; i++) await measure("renderer, files", () => renderer.render({ graph }));
  for (let i = 0; i < renders; i++) {
    await measure("renderer, memory", () => renderer.render({ graph, output: "memory" }));
  }
  for (let i = 0; i < renders; i++) await measure("render()", () => render(graph, { outputDir }));
} finally {
  await renderer.close();
  rmSync(outputDir, { recursive: true, force: true });
}
