import type { BatchEvent } from "../../render/batch/events.js";
import type { PreparedBatch } from "../../render/batch/prepare.js";
import { sheetItemOf } from "../../render/batch/sheet-item.js";
import { createContactSheet } from "../../render/contact-sheet/contact-sheet.js";

/** A contact sheet that follows a batch's events, items of earlier runs included. */
export interface BatchSheet {
  add(event: BatchEvent): Promise<void>;
  finish(): Promise<string[]>;
}

const noSheet: BatchSheet = { add: async () => {}, finish: async () => [] };

export function followWithSheet(path: string | undefined, { graph, graphName }: PreparedBatch): BatchSheet {
  if (path === undefined) return noSheet;
  const sheet = createContactSheet(path, graphName);
  return {
    async add(event) {
      const item = sheetItemOf(event);
      if (item !== undefined) await sheet.add({ ...item, values: graph.redacted(item.values) });
    },
    finish: () => sheet.finish(),
  };
}
