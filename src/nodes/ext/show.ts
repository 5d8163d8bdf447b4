import { defineNode } from "../define.js";
import { any, pipe } from "../inputs.js";
import { valueText } from "../value-text.js";
import { plain } from "../values.js";

/**
 * Shows a value on a node of the workflow in extra_pnginfo, so that saved images hold it: the first node whose id, as
 * text, is `uniqueId` gets `widgets_values = [value]`. Does nothing where there is none.
 */
function setWidgetValues(extraPnginfo: unknown, uniqueId: string | undefined, value: unknown): void {
  if (uniqueId === undefined) return;
  const nodes = property(property(extraPnginfo, "workflow"), "nodes");
  if (!Array.isArray(nodes)) return;
  const node: unknown = nodes.find((candidate) => {
    const id = property(candidate, "id");
    return id !== undefined && id !== null && String(id) === uniqueId;
  });
  // a frozen workflow stays as it is
  if (typeof node === "object" && node !== null) Reflect.set(node, "widgets_values", [value]);
}

function property(object: unknown, key: string): unknown {
  if (typeof object !== "object" || object === null || !Object.hasOwn(object, key)) return undefined;
  return (object as Record<string, unknown>)[key];
}

// decision 109
export const showSpentTime = defineNode({
  key: "ext showSpentTime",
  description: "Shows the time that loading and sampling took, as the pipe holds it.",
  deprecated: true,
  inputs: { pipe: pipe() },
  outputs: {},
  hidden: { unique_id: "UNIQUE_ID", extra_pnginfo: "EXTRA_PNGINFO" },
  outputNode: true,
  hasUi: true,
  run: ({ pipe, unique_id, extra_pnginfo }) => {
    const { spent_time: spent = "" } = pipe.loader_settings ?? {};
    setWidgetValues(extra_pnginfo, unique_id, spent);
    return { result: [], ui: { text: [spent] } };
  },
});

/** A longer list becomes one text. */
const MAX_LISTED_ITEMS = 30;

export const showAnythingLazy = defineNode({
  key: "ext showAnythingLazy",
  description: "Shows any values as text and passes the texts on.",
  deprecated: true,
  inputs: { anything: any({ optional: true, literal: true }) },
  outputs: { output: "*" },
  hidden: { unique_id: "UNIQUE_ID", extra_pnginfo: "EXTRA_PNGINFO" },
  inputIsList: true,
  hasUi: true,
  run: ({ anything, unique_id, extra_pnginfo }) => {
    const values = textsOf(anything ?? []);
    setWidgetValues(extra_pnginfo, unique_id, [...values]);
    return {
      result: [values.length === 1 ? values[0] : values],
      ui: { text: [...values].map((value) => plain(value)) },
    };
  },
});

/** Makes a text of each value; null is skipped, and a list of up to 30 items replaces the texts before it. */
function textsOf(items: readonly unknown[]): unknown[] {
  let values: unknown[] = [];
  for (const item of items) {
    if (item === null || item === undefined) continue;
    if (Array.isArray(item) && item.length <= MAX_LISTED_ITEMS) values = [...item];
    else values.push(valueText(item));
  }
  return values;
}
