import { basename } from "node:path";
import type { BatchEvent } from "../../render/batch/events.js";
import { sheetItemOf } from "../../render/batch/sheet-item.js";
import { createContactSheet } from "../../render/contact-sheet/contact-sheet.js";
import type { BatchPlan } from "./batch-plan.js";

/** A contact sheet that follows a batch's events, items of earlier runs included. */
export interface BatchSheet {
  add(event: BatchEvent): Promise<void>;
  finish(): Promise<string[]>;
}

const noSheet: BatchSheet = { add: async () => {}, finish: async () => [] };

export function followWithSheet({ graph, sheet: path, redacted }: BatchPlan): BatchSheet {
  if (path === undefined) return noSheet;
  const sheet = createContactSheet(path, basename(graph));
  return {
    async add(event) {
      const item = sheetItemOf(event);
      if (item !== undefined) await sheet.add({ ...item, values: redacted(item.values) });
    },
    finish: () => sheet.finish(),
  };
}
