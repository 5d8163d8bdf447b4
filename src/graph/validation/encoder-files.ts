import type { EncoderFile } from "../../host/types.js";
import { isPlainObject } from "../../io/json/lossless.js";
import type { NodeDefinition } from "../../nodes/define.js";
import type { Graph } from "../parse.js";

/** Types of what encodes prompts: a node without any of them does not read its texts as prompts. */
export const ENCODERS: ReadonlySet<string> = new Set(["CLIP", "PIPE_LINE"]);

/** Nodes between a prompt and its model that are looked at: a graph may be long, and have many prompts. */
const MOST_NODES = 64;

/** Graph in which the files of encoders are looked for. */
export interface EncoderSearch {
  readonly graph: Graph;
  readonly definitions: ReadonlyMap<string, NodeDefinition>;
}

/** Files from which the text encoders of a node come, along its links; none where they lead too far. */
export function encoderFiles(from: string, { graph, definitions }: EncoderSearch): EncoderFile[] {
  const files: EncoderFile[] = [];
  const seen = new Set([from]);
  for (const id of seen) {
    if (seen.size > MOST_NODES) return [];
    const node = graph.prompt[id];
    const given = isPlainObject(node) && isPlainObject(node.inputs) ? node.inputs : {};
    for (const [input, { type, files: kind }] of Object.entries(definitions.get(id)?.inputs ?? {})) {
      const value = Object.hasOwn(given, input) ? given[input] : undefined;
      if (Array.isArray(value)) {
        const [source] = value as unknown[];
        if (ENCODERS.has(type) && typeof source === "string" && definitions.has(source)) seen.add(source);
      } else if (typeof value === "string" && (kind === "checkpoints" || kind === "text_encoders")) {
        files.push({ kind, name: value });
      }
    }
  }
  return files;
}
