import { isPlainObject } from "../../io/json/lossless.js";
import { type Settings, settingsOf } from "./settings.js";

type Prompt = Readonly<Record<string, unknown>>;

/**
 * Settings of a picture by the graph in it: of the node that saved it where that is known, else of the last one that saves
 * pictures. Undefined where the graph samples nothing.
 */
export function pictureSettings(graph: unknown, node: string | undefined): Settings | undefined {
  if (!isPlainObject(graph)) return undefined;
  const savers =
    node === undefined
      ? Object.keys(graph)
          .filter((id) => isSaver(graph, id))
          .reverse()
      : [node];
  for (const id of savers) {
    const settings = settingsOf(graph, id);
    if (settings !== undefined) return settings;
  }
  return undefined;
}

function isSaver(graph: Prompt, id: string): boolean {
  const node = graph[id];
  const inputs = isPlainObject(node) && isPlainObject(node.inputs) ? node.inputs : {};
  return Array.isArray(inputs.images);
}
