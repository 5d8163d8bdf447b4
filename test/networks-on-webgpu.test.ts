import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import type { Target } from "#src/host/checkpoint/onnx/target.js";
import type { Plan } from "#src/host/checkpoint/runtime/session-options.js";
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
/** The soonest done, which every run of the tests compares. */
const QUICK = "text encoder of SD 1";
const isText = (name: string): boolean => name.includes("text encoder");

async function assertSound(
  name: string,
  env: Record<string, string>,
  { plan, attention }: { readonly plan: Plan; readonly attention: Target["attention"] },
): Promise<void> {
  const { stdout } = await promisify(execFile)(process.execPath, [PROGRAM, name, plan, attention], {
    env: { ...process.env, ...env },
  });
  const { difference, copies, onCpu } = JSON.parse(stdout) as Comparison;
  assert.ok(difference <= TOLERANCE, `differs by ${difference}`);
  assert.ok(copies <= (isText(name) ? TOKEN_COPIES : 0), `${copies} copies`);
  assert.deepEqual(
    onCpu.filter((operator) => HEAVY.test(operator)),
    [],
  );
}

describe("networks on WebGPU", () => {
  for (const name of Object.keys(TINY_NETWORKS))
    it(`${name}: computed as on the CPU, all on the device${name === QUICK ? "" : " @long"}`, async function () {
      await assertSound(name, softwareGpu(this), { plan: "fold", attention: "plain" });
    });

  if (isLlvmpipe) {
    for (const name of Object.keys(TINY_NETWORKS))
      it(`${name}: the same with weights that stay float16 @long`, async function () {
        await assertSound(name, softwareGpu(this), { plan: "keep", attention: "plain" });
      });

    for (const name of ["UNet of SD 2", "UNet of SDXL", "text encoder of SD 2", "VAE decoder"])
      it(`${name}: the same with fused attention, by its program for NVIDIA @long`, async function () {
        const env = { ...softwareGpu(this), LATENTKIT_VULKAN_VENDOR: NVIDIA };
        await assertSound(name, env, { plan: "keep", attention: "fused" });
      });
  }
});
