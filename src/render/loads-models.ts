import type { Registry } from "../nodes/registry.js";

/** Whether a node of the graph loads a model file. */
export function loadsModels(prompt: Readonly<Record<string, unknown>>, registry: Registry): boolean {
  const classes = new Set(Object.values(prompt).map((node) => (node as { class_type?: unknown }).class_type));
  const inputs = [...classes].flatMap((name) => Object.values(registry.get(String(name))?.inputs ?? {}));
  return inputs.some(({ files }) => files !== undefined);
}
