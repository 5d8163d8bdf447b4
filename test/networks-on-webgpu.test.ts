import assert from "node:assert/strict";
import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import type { Target } from "#src/host/checkpoint/onnx/target.js";
import type { Plan } from "#src/host/checkpoint/session/options.js";
import type { Comparison } from "./helpers/networks/compare-network.js";
import { TINY_NETWORKS } from "./helpers/networks/tiny-networks.js";
import { isLlvmpipe, softwareGpu } from "./helpers/process/software-gpu.js";

const PROGRAM = fileURLToPath(new URL("helpers/networks/compare-network.js", import.meta.url));
/** Sound networks stay below 4e-5, a broken attention was off by 0.01. */
const TOLERANCE = 1e-4;
/** Operators that take nearly all of a run's time. */
const HEAVY = /MatMul|Gemm|Conv|Attention/;
/** Copies of a text encoder's tokens, which are compared on the CPU. */
const TOKEN_COPIES = 4;
const NVIDIA = "0x10de";
/** The UNet with a LoRA has the operators of the other UNets, but for the layers of a label, and of ControlNets. */
const LONG = [
  "UNet of SD 1",
  "UNet of SD 2",
  "UNet of SDXL",
  "UNet for inpainting",
  "UNet with weights of 8 bits",
  "ControlNet",
  "ControlNet for several kinds of pictures",
];
const ALL = Object.keys(TINY_NETWORKS);

interface Forms {
  readonly plan: Plan;
  readonly attention: Target["attention"];
  readonly env?: Readonly<Record<string, string>>;
}

/** Networks in one process, so that each program of the GPU is compiled once. */
function describeNetworks(title: string, tagged: readonly string[], { plan, attention, env }: Forms): void {
  describe(title, () => {
    let child: ChildProcess | undefined;
    after(() => child?.kill());

    for (const name of tagged)
      it(name, async function () {
        const gpu = { ...softwareGpu(this), ...env };
        if (child?.connected !== true) child = fork(PROGRAM, [plan, attention], { env: { ...process.env, ...gpu } });
        const network = name.replace(/ @long$/, "");
        const { difference, copies, onCpu } = await comparison(child, network);
        assert.ok(difference <= TOLERANCE, `differs by ${difference}`);
        assert.ok(copies <= (network.includes("text encoder") ? TOKEN_COPIES : 0), `${copies} copies`);
        assert.deepEqual(
          onCpu.filter((operator) => HEAVY.test(operator)),
          [],
        );
      });
  });
}

async function comparison(child: ChildProcess, network: string): Promise<Comparison> {
  const settled = new AbortController();
  const { signal } = settled;
  child.send(network);
  const received = once(child, "message", { signal }).then(([message]) => message as Comparison);
  const ended = once(child, "exit", { signal }).then((how) => assert.fail(`its process ended: ${how.join(" ")}`));
  try {
    return await Promise.race([received, ended]);
  } finally {
    settled.abort();
  }
}

const long = (names: readonly string[]): string[] => names.map((name) => `${name} @long`);

describe("networks on WebGPU", () => {
  const some = ALL.filter((name) => !LONG.includes(name));
  const tagged = [...some, ...long(LONG)];
  describeNetworks("are computed as on the CPU, all on the device:", tagged, { plan: "fold", attention: "plain" });

  if (isLlvmpipe) {
    describeNetworks("do so with weights that stay float16:", long(ALL), { plan: "keep", attention: "plain" });

    const attending = ["UNet of SD 2", "UNet of SDXL", "text encoder of SD 2", "VAE decoder"];
    describeNetworks("do so with fused attention, by its program for NVIDIA:", long(attending), {
      plan: "keep",
      attention: "fused",
      env: { LATENTKIT_VULKAN_VENDOR: NVIDIA },
    });
  }
});
