import { resolve } from "node:path";
import { describe, LatentkitError } from "../../errors.js";
import type { Graph } from "../../graph/parse.js";
import { inputFileHash } from "../../io/input-file.js";
import { engineVersion } from "../../native/engine-version.js";
import { defaultHost, defaultRegistry } from "../defaults.js";
import { createOrigins } from "../receipt/origins.js";
import type { Receipt } from "../receipt.js";
import { REDACTED } from "../redact.js";

/** Something that is not as the receipt says. */
export interface Difference {
  readonly what: "pixels" | "prompt" | "rendered" | "receipt" | "engine" | "input" | "host" | "redacted";
  /** One sentence. */
  readonly message: string;
}

interface Place {
  /** ./input where absent. */
  readonly inputDir?: string;
}

/** Seeds and streams of noise that the receipt tells otherwise than the graph beside it. */
export async function untrueOf(graph: Graph, receipt: Receipt, { inputDir }: Place): Promise<Difference[]> {
  const place = { host: defaultHost, inputDir: resolve(inputDir ?? "input") };
  const isShown = (nodeId: string, input: string) => {
    const { inputs } = graph.prompt[nodeId] as { inputs?: Readonly<Record<string, unknown>> };
    return inputs?.[input] !== REDACTED;
  };
  const { seeds, noise } = await createOrigins(graph, defaultRegistry, place, isShown)(receipt.node);
  // another version may have told less
  const isComplete = receipt.engine === engineVersion();
  const compared = (what: string, told: Readonly<Record<string, string>>, found: Readonly<Record<string, string>>) => {
    const keys = new Set([...Object.keys(told), ...(isComplete ? Object.keys(found) : [])]);
    const toldAs = (values: Readonly<Record<string, string>>, key: string) =>
      Object.hasOwn(values, key) ? describe(values[key]) : "none";
    return [...keys]
      .filter((key) => toldAs(told, key) !== toldAs(found, key))
      .map((key): Difference => {
        const message = `The receipt has ${what} ${key} as ${toldAs(told, key)}, the graph in the file as ${toldAs(found, key)}.`;
        return { what: "receipt", message };
      });
  };
  return [...compared("the seed", receipt.seeds, seeds), ...compared("the noise of node", receipt.noise, noise)];
}

/** What is not as it was when the picture was rendered. */
export async function causesOf({ engine, host, inputs }: Receipt, { inputDir }: Place): Promise<Difference[]> {
  const causes: Difference[] = [];
  const now = engineVersion();
  if (engine !== now) {
    causes.push({ what: "engine", message: `It was rendered by latentkit ${engine}; this is ${now}.` });
  }
  if (host.name !== defaultHost.name || host.preview !== defaultHost.preview) {
    causes.push({
      what: "host",
      message: `Its models came from the host ${describe(host.name)}; this is ${describe(defaultHost.name)}.`,
    });
  }
  for (const [name, hash] of Object.entries(inputs)) {
    const message = await inputDifference(resolve(inputDir ?? "input"), name, hash);
    if (message !== undefined) causes.push({ what: "input", message });
  }
  return causes;
}

async function inputDifference(folder: string, name: string, hash: string): Promise<string | undefined> {
  try {
    const isSame = `sha256:${await inputFileHash(folder, name)}` === hash;
    return isSame ? undefined : `The input file ${describe(name)} is another one now.`;
  } catch (error) {
    if (error instanceof LatentkitError) return error.message;
    throw error;
  }
}
