import { release } from "node:os";
import { join } from "node:path";
import { cacheFolder } from "../../../../base/cache-folder.js";
import { isObject } from "../../../../base/options.js";
import { packageVersion } from "../../../../base/package.js";
import { StoredTexts } from "../../../../base/stored-texts.js";
import type { GraphicsAdapter } from "../../../../native/bindings.js";
import type { Provider } from "../session-options.js";
import type { Verdict } from "./trial.js";

/** On what a verdict depends. */
export interface Circumstances {
  readonly provider: Provider;
  /** Version of onnxruntime-node. */
  readonly version: string;
  readonly adapters: readonly GraphicsAdapter[];
}

type Usable = Extract<Verdict, { isUsable: true }>;

/** Good verdicts of earlier processes, in the user's cache folder. Others are tried again: what failed may be mended. */
export class StoredVerdicts {
  readonly #texts: StoredTexts;

  constructor(folder = join(cacheFolder(), "devices")) {
    this.#texts = new StoredTexts(folder);
  }

  /** Whether no verdict is there, of whatever circumstances. */
  isEmpty(): Promise<boolean> {
    return this.#texts.isEmpty();
  }

  async get(circumstances: Circumstances): Promise<Usable | undefined> {
    try {
      const verdict: unknown = JSON.parse((await this.#texts.get(keyOf(circumstances))) ?? "");
      return isVerdict(verdict) ? verdict : undefined;
    } catch {
      return undefined;
    }
  }

  async set(circumstances: Circumstances, verdict: Verdict): Promise<void> {
    const key = keyOf(circumstances);
    await (verdict.isUsable ? this.#texts.set(key, JSON.stringify(verdict)) : this.#texts.remove(key));
  }
}

// where the system tells no adapters, its release stands for their drivers
const keyOf = ({ provider, version, adapters }: Circumstances): string =>
  JSON.stringify([packageVersion(), provider, version, process.platform, process.arch, release(), adapters]);

function isVerdict(value: unknown): value is Usable {
  if (!isObject(value)) return false;
  const { isUsable, target, speed } = value as Record<string, unknown>;
  if (isUsable !== true || typeof speed !== "number" || !isObject(target)) return false;
  const { attention, largestHead, matMul, convChannels, halfTypes } = target as Record<string, unknown>;
  return (
    ["fused", "plain"].includes(attention as string) &&
    typeof largestHead === "number" &&
    ["fused", "transposed"].includes(matMul as string) &&
    ["any", "fours"].includes(convChannels as string) &&
    Array.isArray(halfTypes) &&
    halfTypes.every((type) => type === "F16")
  );
}
