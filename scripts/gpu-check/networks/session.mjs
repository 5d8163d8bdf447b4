// Sessions of ONNX Runtime, timed and compared: time in ms, memory of the card in MiB.
import { execFileSync, spawn } from "node:child_process";
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import ort from "onnxruntime-node";
import { coreCount } from "../../../dist/host/checkpoint/runtime/machine.js";
import { sessionOptions } from "../../../dist/host/checkpoint/session/options.js";

const QUERY = ["--query-gpu=memory.used", "--format=csv,noheader,nounits"];
/** An NVIDIA card's memory is watched this often, in ms. */
const INTERVAL = "50";

const rounded = (value) => (Number.isFinite(value) ? Number(value.toPrecision(4)) : String(value));

export const print = (row) => process.stdout.write(`${JSON.stringify(row)}\n`);

/** Memory in use on the card; undefined without nvidia-smi. */
export function cardMemory() {
  try {
    return Number(execFileSync("nvidia-smi", QUERY, { encoding: "utf8", stdio: ["ignore", "pipe", "ignore"] }).trim());
  } catch {
    return undefined;
  }
}

function watchMemory() {
  let most = 0;
  const child = spawn("nvidia-smi", [...QUERY, "-lms", INTERVAL], { stdio: ["ignore", "pipe", "ignore"] });
  child.on("error", () => {}); // not installed
  child.stdout.setEncoding("utf8").on("data", (text) => {
    for (const line of text.trim().split("\n")) most = Math.max(most, Number(line) || 0);
  });
  return {
    stop() {
      child.kill();
      return most;
    },
  };
}

/**
 * Loads a graph; `more` are options of onnxruntime-node.
 *
 * @param {import("../../../dist/host/checkpoint/onnx/graph.js").EncodedGraph} graph
 * @param {import("../../../dist/host/checkpoint/session/options.js").Provider} provider
 * @param {import("onnxruntime-node").InferenceSession.SessionOptions} [more]
 */
export function load({ bytes, folder }, provider, more = {}) {
  return ort.InferenceSession.create(bytes, {
    ...sessionOptions({ provider, threads: coreCount() }, folder),
    ...more,
  });
}

/** A tensor [...shape] of float32, or of the type of its values. */
export const tensor = (values, shape) =>
  new ort.Tensor(values instanceof BigInt64Array ? "int64" : "float32", values, [...shape]);

/** Values that repeat nowhere, of deviation 1. */
export function noise(shape, salt) {
  const values = new Float32Array(shape.reduce((size, side) => size * side, 1));
  let state = Math.imul(salt, 0x9e3779b1);
  for (let i = 0; i < values.length; i++) {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) | 0;
    values[i] = Math.sqrt(3) * (state / 2 ** 31);
  }
  return tensor(values, shape);
}

/** Root mean square of the differences, relative to that of the values. */
function difference(expected, received) {
  let [sum, squares] = [0, 0];
  for (let i = 0; i < expected.length; i++) {
    sum += (expected[i] - received[i]) ** 2;
    squares += expected[i] ** 2;
  }
  return Math.sqrt(sum / squares);
}

/**
 * Loads a graph, runs it once and `times` more, prints a row and returns the first output. With `profile` the row names
 * what ran on the CPU or was copied.
 *
 * @param {string} name
 * @param {import("../../../dist/host/checkpoint/onnx/graph.js").EncodedGraph} graph
 * @param {Record<string, import("onnxruntime-node").Tensor>} feeds
 * @param {{ provider: import("../../../dist/host/checkpoint/session/options.js").Provider,
 *   times?: number, expected?: Float32Array, profile?: boolean }} how
 */
export async function measure(name, graph, feeds, how) {
  const { provider, times = 5, expected, profile = false } = how;
  const before = cardMemory() ?? 0;
  const watch = watchMemory();
  const clock = async (call) => {
    const began = performance.now();
    const result = await call();
    return [performance.now() - began, result];
  };
  const [loadMs, session] = await clock(() => load(graph, provider));
  try {
    const [firstMs] = await clock(() => session.run(feeds));
    const runs = [];
    for (let run = 0; run < times; run++) runs.push(await clock(() => session.run(feeds)));
    const medianMs = runs.map(([ms]) => ms).sort((a, b) => a - b)[times >> 1];
    const [output] = Object.values(runs.at(-1)[1]);
    const memory = cardMemory();
    print({
      name,
      loadMs: rounded(loadMs),
      firstMs: rounded(firstMs),
      medianMs: rounded(medianMs),
      ...(memory !== undefined && { memoryMiB: memory - before, peakMiB: watch.stop() - before }),
      ...(expected !== undefined && { difference: rounded(difference(expected, output.data)) }),
      // apart, for a profile slows the runs
      ...(profile && { elsewhere: await placed(graph, feeds, provider) }),
    });
    return output.data;
  } finally {
    watch.stop();
    await session.release();
  }
}

/** Numbers of the operators that did not run on the provider, and of copies. */
async function placed(graph, feeds, provider) {
  const folder = mkdtempSync(join(tmpdir(), "latentkit-profile-"));
  try {
    const session = await load(graph, provider, {
      enableProfiling: true,
      profileFilePrefix: join(folder, "profile"),
    });
    await session.run(feeds);
    session.endProfiling();
    await session.release();
    const counts = {};
    for (const { cat, args } of JSON.parse(readFileSync(join(folder, readdirSync(folder)[0]), "utf8"))) {
      if (cat !== "Node" || args?.provider === undefined) continue;
      const isElsewhere = !args.provider.toLowerCase().startsWith(provider) || /memcpy/i.test(args.op_name);
      if (isElsewhere) counts[args.op_name] = (counts[args.op_name] ?? 0) + 1;
    }
    return counts;
  } finally {
    rmSync(folder, { recursive: true });
  }
}
