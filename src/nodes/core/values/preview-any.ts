import { defineNode } from "../../define.js";
import { any } from "../../inputs.js";
import { valueText } from "../../value-text.js";
import { plain } from "../../values.js";

export const previewAny = defineNode({
  key: "PreviewAny",
  displayName: "Preview as Text",
  category: "utils",
  description: "Shows any value as text.",
  inputs: { source: any({ literal: true }) },
  outputs: { STRING: "STRING" },
  outputNode: true,
  hasUi: true,
  run: ({ source }) => {
    const shown = String(plain(valueText(source)));
    return { result: [shown], ui: { text: [shown] } };
  },
});
