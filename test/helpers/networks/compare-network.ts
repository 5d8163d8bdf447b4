// A program: runs networks of the tiny models on the CPU and on WebGPU, or on a provider in the forms that its trial has found.
// Its parent sends their names and receives a Comparison for each. The graphics driver belongs to the process.
// Usage: compare-network.js PLAN ATTENTION [PROVIDER]; scripts/gpu-check uses it too.
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Tensor } from "latentkit";
import { OnnxGraph } from "#src/host/checkpoint/onnx/graph.js";
import type { Target } from "#src/host/checkpoint/onnx/target.js";
import { chooseDevice } from "#src/host/checkpoint/runtime/devices/choice.js";
import {
  CPU_DEVICE,
  type Device,
  type Plan,
  type Provider,
  sessionOptions,
} from "#src/host/checkpoint/session/options.js";
import { networkOf } from "#src/host/checkpoint/weights/network.js";
import { HalfWeights } from "#src/host/checkpoint/weights/values.js";
import { type GraphSession, graphSession } from "../models/session.js";
import { TINY_NETWORKS, type TinyNetwork } from "./tiny-networks.js";

/** A network on a device beside the CPU. */
export interface Comparison {
  /** Largest over the outputs: root mean square of the differences relative to that of the values. */
  readonly difference: number;
  /** Copies between the device and the CPU. */
  readonly copies: number;
  /** Operators that the CPU computed, each once, sorted. */
  readonly onCpu: readonly string[];
}

const [plan, attention, chosen] = process.argv.slice(2) as [Plan, Target["attention"], Provider?];
const isKept = plan === "keep";
const WEBGPU: Device = {
  provider: "webgpu",
  target: {
    attention,
    largestHead: 256,
    matMul: "transposed",
    convChannels: "fours",
    halfTypes: isKept ? ["F16"] : [],
  },
};
const device: Device | Promise<Device> = chosen === undefined ? WEBGPU : chooseDevice(chosen);
/** The last session of the device: compiled programs, which take most of the time, go with the last one that there is. */
let held: GraphSession | undefined;

async function run(
  { weights, changes, build, feeds }: TinyNetwork,
  { provider, target }: Device,
  profile?: string,
): Promise<Record<string, Tensor>> {
  const graph = new OnnxGraph("network", target);
  const isHalved = isKept && target.halfTypes.includes("F16");
  const halves = isHalved && provider !== "cpu" ? await new HalfWeights(weights).find() : undefined;
  build(networkOf(graph, weights, { changes, halves }));
  const encoded = graph.encode({ overridable: isHalved && "F16" });
  const { executionProviders, ...options } = sessionOptions({ provider, threads: 2 }, encoded.folder);
  const session = await graphSession(encoded, {
    ...options,
    executionProviders: [...executionProviders],
    ...(profile !== undefined && { enableProfiling: true, profileFilePrefix: profile }),
  });
  const outputs = await session.run(feeds);
  if (profile === undefined) {
    await session.release();
    return outputs;
  }
  session.endProfiling();
  await held?.release();
  held = session;
  return outputs;
}

function relativeDifference(expected: Tensor, received: Tensor): number {
  let [sum, squares] = [0, 0];
  for (const [i, value] of expected.data.entries()) {
    sum += (value - received.data[i]!) ** 2;
    squares += value ** 2;
  }
  return Math.sqrt(sum / squares);
}

interface ProfileEvent {
  readonly cat: string;
  readonly args?: { readonly op_name: string; readonly provider?: string };
}

function operatorsIn(folder: string): { readonly op: string; readonly isOnCpu: boolean }[] {
  const events = JSON.parse(readFileSync(join(folder, readdirSync(folder)[0]!), "utf8")) as ProfileEvent[];
  return events.flatMap(({ cat, args }) =>
    cat === "Node" && args?.provider !== undefined
      ? [{ op: args.op_name, isOnCpu: args.provider.startsWith("CPU") }]
      : [],
  );
}

async function compare(network: TinyNetwork): Promise<Comparison> {
  const folder = mkdtempSync(join(tmpdir(), "latentkit-test-"));
  try {
    const expected = await run(network, CPU_DEVICE);
    const received = await run(network, await device, join(folder, "profile"));
    const operators = operatorsIn(folder);
    const isCopy = ({ op }: { op: string }) => op.startsWith("Memcpy");
    return {
      difference: Math.max(
        ...Object.entries(expected).map(([key, value]) => relativeDifference(value, received[key]!)),
      ),
      copies: operators.filter(isCopy).length,
      onCpu: [...new Set(operators.flatMap((one) => (one.isOnCpu && !isCopy(one) ? [one.op] : [])))].sort(),
    };
  } finally {
    rmSync(folder, { recursive: true });
  }
}

// the files of each network are removed in the end
process.setMaxListeners(0);
process.on("message", async (name: string) => process.send!(await compare(await TINY_NETWORKS[name]!())));
// a session of WebGPU keeps the process alive
process.on("disconnect", () => process.exit());
