import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { Tensor } from "latentkit";
import { type EncodedGraph, OnnxGraph } from "#src/host/checkpoint/onnx/graph.js";
import type { Plan } from "#src/host/checkpoint/session/options.js";
import type { SessionSource } from "#src/host/checkpoint/session/sessions.js";
import { networkOf } from "#src/host/checkpoint/weights/network.js";
import { weightFile, words, writeWeights } from "./weight-file.js";

/** A network whose graph is written for each plan. */
export interface GraphSource extends SessionSource {
  make(plan: Plan): EncodedGraph;
}

/** Halves of 1, 2 and so on. */
const HALVES = [0x3c00, 0x4000, 0x4200, 0x4400, 0x4500, 0x4600];

/** y = x · Wᵀ with W = [[1, 2, 3], [4, 5, 6]], stored as F16 in a file of the folder. */
export async function linearSource(folder: string, name = "linear"): Promise<GraphSource> {
  const path = writeWeights(join(folder, `${name}.safetensors`), { w: words("F16", [2, 3], HALVES) });
  const { weights, bytes } = await weightFile(path);
  return {
    key: path,
    label: name,
    parameters: 6,
    fileBytes: bytes,
    make(plan) {
      const network = networkOf(new OnnxGraph(name), weights);
      const { graph } = network;
      const x = graph.input("x", "float", ["rows", 3]);
      const transposed = graph.node("Transpose", [network.weight("w", [2, 3])], { perm: { ints: [1, 0] } });
      graph.output(graph.node("MatMul", [x, transposed]), "y", "float", ["rows", 2]);
      return graph.encode({ overridable: plan === "stream" });
    },
  };
}

export const ROW = (): Tensor => Tensor.from([1, 1, 1], [1, 3]);

const SIDE = 1024;

/** `times` products of [1024, 1024] matrices, 40 ms and more each. */
export function slowSource(times: number): GraphSource {
  return {
    key: `slow ${times}`,
    label: "slow",
    parameters: 1,
    fileBytes: 4,
    make() {
      const graph = new OnnxGraph("slow");
      const x = graph.input("x", "float", [SIDE, SIDE]);
      let y = x;
      for (let i = 0; i < times; i++) y = graph.node("MatMul", [y, x]);
      graph.output(y, "y", "float", [SIDE, SIDE]);
      return graph.encode({ overridable: false });
    },
  };
}

/** Matrix whose powers are all itself. */
export const slowInput = (): Tensor => Tensor.full([SIDE, SIDE], 1 / SIDE);

/** y = x + 1 for a float x of any shape [n]. */
export function plusOneSource(key = "plus one"): GraphSource {
  return {
    key,
    label: key,
    parameters: 1,
    fileBytes: 4,
    make() {
      const graph = new OnnxGraph("plus one");
      const x = graph.input("x", "float", ["n"]);
      graph.output(graph.node("Add", [x, graph.floats([1], [1])]), "y", "float", ["n"]);
      return graph.encode({ overridable: false });
    },
  };
}

/** A stage: y = x + 1. */
export const stageSource = (): SessionSource => ({ ...plusOneSource("stage"), isStage: true });

/** y = x · y.0 · y.1, of two stages. */
export function productSource(): GraphSource {
  return {
    key: "product",
    label: "product",
    parameters: 1,
    fileBytes: 4,
    make() {
      const graph = new OnnxGraph("product");
      const [x, first, second] = ["x", "y.0", "y.1"].map((name) => graph.input(name, "float", ["n"]));
      graph.output(graph.node("Mul", [graph.node("Mul", [x!, first!]), second!]), "y", "float", ["n"]);
      return graph.encode({ overridable: false });
    },
  };
}

/** Waits until a child process computes: sending inputs takes less of its processor. Without /proc it waits for a second. */
export async function untilBusy(processId: number): Promise<void> {
  const path = `/proc/${processId}/stat`;
  if (!existsSync(path)) return void (await sleep(1000));
  const ticks = () => {
    const fields = readFileSync(path, "utf8").split(") ").at(-1)!.split(" ");
    return Number(fields[11]) + Number(fields[12]);
  };
  const before = ticks();
  while (ticks() < before + 20) await sleep(10);
}
