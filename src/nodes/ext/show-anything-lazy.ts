import { defineNode } from "../define.js";
import { any } from "../inputs.js";
import { valueText } from "../value-text.js";
import { plain } from "../values.js";
import { setWidgetValues } from "./workflow-node.js";

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
