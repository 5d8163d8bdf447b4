import { describe, LatentkitError } from "../base/errors.js";
import { inputsOf } from "../graph/parse.js";
import { cloneJson, isPlainObject } from "../io/json/lossless.js";
import { type DefinitionOf, nodesTitled, PRIMITIVE_INPUT, readDottedKey } from "./fill/keys.js";
import { findInput } from "./fill/targets.js";

// The hash of the graph is that of the redacted text: a hash of hidden values would let them be guessed.
// An editor's workflow has values without names, so all widgets of a node go if one of its inputs is hidden.
/** Replaces hidden values in metadata. */
export const REDACTED = "[redacted]";

/** Metadata of a run as files show it. */
export interface Metadata {
  readonly prompt: Record<string, unknown>;
  readonly extraPnginfo: unknown;
}

/**
 * Metadata without the values of some keys: `node.input`, the title of a primitive, or a bare key at any depth of the
 * graph and of extra_pnginfo.
 * An editor's workflow holds a node's values without names: all of a node's values go if the graph hides one of them. The
 * arguments are not changed. Fails with usage.invalid for a list of anything but keys and for a `node.input` that is nowhere.
 */
export function redactMetadata(
  { prompt, extraPnginfo }: Metadata,
  keys: readonly string[],
  definitionOf: DefinitionOf,
): Metadata {
  if (!Array.isArray(keys) || keys.some((key) => typeof key !== "string" || key === "")) {
    throw new LatentkitError("usage.invalid", `redact: expected a list of keys, received ${describe(keys)}.`);
  }
  if (keys.length === 0) return { prompt, extraPnginfo };
  const redacted = { prompt: cloneJson(prompt), extraPnginfo: cloneJson(extraPnginfo) };
  const keySet = new Set(keys);
  const matches = new Set<string>();
  const hidden = new Set<string>();
  for (const key of keys) {
    for (const { nodeId, input } of readDottedKey(key)) {
      const inputs = inputsOf(redacted.prompt, nodeId);
      if (inputs === undefined || !Object.hasOwn(inputs, input)) continue;
      inputs[input] = REDACTED;
      matches.add(key);
      hidden.add(nodeId);
    }
    for (const nodeId of nodesTitled(redacted.prompt, key, definitionOf)) {
      inputsOf(redacted.prompt, nodeId)![PRIMITIVE_INPUT] = REDACTED;
      matches.add(key);
      hidden.add(nodeId);
    }
  }
  for (const [nodeId, node] of Object.entries(redacted.prompt)) {
    if (keySet.has(nodeId)) {
      redacted.prompt[nodeId] = REDACTED;
      matches.add(nodeId);
      hidden.add(nodeId);
    } else if (hide(node, keySet, matches)) hidden.add(nodeId);
  }
  hide(redacted.extraPnginfo, keySet, matches);
  hideWidgets(redacted.extraPnginfo, hidden);
  // a misspelt key would show what it should hide
  for (const key of keys) if (key.includes(".") && !matches.has(key)) findInput(prompt, key, definitionOf, "redact");
  return redacted;
}

/** Puts the mark in place of every value under these keys. Returns whether there was one. */
function hide(value: unknown, keys: ReadonlySet<string>, matches: Set<string>): boolean {
  let isHidden = false;
  if (Array.isArray(value)) {
    for (const item of value) if (hide(item, keys, matches)) isHidden = true;
  } else if (isPlainObject(value)) {
    for (const key of Object.keys(value)) {
      if (keys.has(key)) {
        value[key] = REDACTED;
        matches.add(key);
        isHidden = true;
      } else if (hide(value[key], keys, matches)) isHidden = true;
    }
  }
  return isHidden;
}

/** Hides the widgets of these nodes wherever a workflow lies. */
function hideWidgets(value: unknown, nodeIds: ReadonlySet<string>): void {
  if (Array.isArray(value)) for (const item of value) hideWidgets(item, nodeIds);
  if (!isPlainObject(value)) return;
  for (const inner of Object.values(value)) hideWidgets(inner, nodeIds);
  const { id, widgets_values: widgets } = value;
  if (widgets === undefined || !nodeIds.has(String(id))) return;
  if (Array.isArray(widgets)) value.widgets_values = widgets.map(() => REDACTED);
  else if (isPlainObject(widgets)) for (const key of Object.keys(widgets)) widgets[key] = REDACTED;
  else value.widgets_values = REDACTED;
}
