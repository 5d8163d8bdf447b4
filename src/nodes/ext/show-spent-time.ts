import { defineNode } from "../define.js";
import { pipe } from "../inputs.js";
import { setWidgetValues } from "./workflow-node.js";

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
