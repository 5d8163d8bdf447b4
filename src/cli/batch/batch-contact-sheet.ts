import { basename } from "node:path";
import type { BatchEvent } from "../../render/batch/events.js";
import { createContactSheet } from "../../render/contact-sheet/contact-sheet.js";
import type { BatchPlan } from "./batch-plan.js";

const PICTURE = /\.(png|webp|jpg|avif)$/i;

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
      if (event.type === "item-done" || event.type === "item-skipped") {
        const pictures = event.files.map(({ path }) => path).filter((path) => PICTURE.test(path));
        await sheet.add({ index: event.index, values: redacted(event.values), pictures });
      } else if (event.type === "item-failed" && !event.willRetry) {
        await sheet.add({ index: event.index, values: redacted(event.values), pictures: [], isFailed: true });
      }
    },
    finish: () => sheet.finish(),
  };
}
