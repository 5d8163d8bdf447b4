import { existsSync } from "node:fs";
import { join } from "node:path";
import type { Context } from "mocha";
import { skip } from "../skip.js";

/** Debian's chromium: it brings SwiftShader, which is Vulkan on the processor, and a loader of Vulkan. */
const CHROMIUM = "/usr/lib/chromium";
const SWIFTSHADER = join(CHROMIUM, "vk_swiftshader_icd.json");
/** The description of another driver, which scripts/check-webgpu.mjs has built around llvmpipe. */
const LLVMPIPE = process.env.LATENTKIT_TEST_VULKAN;

/** Whether the adapter of `softwareGpu` has float16, which SwiftShader has not, and takes the number of any vendor. */
export const isLlvmpipe = LLVMPIPE !== undefined;

/** The environment of a process that finds a software adapter and no other one. Skips the test if none is installed. */
export function softwareGpu(test: Context): Record<string, string> {
  // eight lanes: subgroups of the size that Intel's cards have
  if (LLVMPIPE !== undefined) return { VK_ICD_FILENAMES: LLVMPIPE, LP_NATIVE_VECTOR_WIDTH: "256" };
  if (!existsSync(SWIFTSHADER)) skip(test, "SwiftShader comes with Debian's package chromium");
  return { VK_ICD_FILENAMES: SWIFTSHADER, LD_LIBRARY_PATH: CHROMIUM };
}
