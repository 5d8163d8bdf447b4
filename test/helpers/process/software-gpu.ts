import { existsSync } from "node:fs";
import { join } from "node:path";
import type { Context } from "mocha";
import { skip } from "../skip.js";

/** Debian's chromium: it brings SwiftShader, which is Vulkan on the processor, and a loader of Vulkan. */
const CHROMIUM = "/usr/lib/chromium";
const SWIFTSHADER = join(CHROMIUM, "vk_swiftshader_icd.json");

/** The environment of a process that finds SwiftShader and no other adapter. Skips the test where it is not installed. */
export function softwareGpu(test: Context): Record<string, string> {
  if (!existsSync(SWIFTSHADER)) skip(test, "SwiftShader comes with Debian's package chromium");
  return { VK_ICD_FILENAMES: SWIFTSHADER, LD_LIBRARY_PATH: CHROMIUM };
}
