import { basename, join } from "node:path";
import { finishedFiles } from "../../render/batch/journal/journal-reading.js";
import type { BatchEvent, BatchItem } from "../../render/batch/types.js";
import { createContactSheet } from "../../render/contact-sheet/contact-sheet.js";
import type { BatchPlan } from "./batch-plan.js";

const PNG = /\.png$/i;

/** A contact sheet that follows a batch's events, items of earlier runs included. */
export interface BatchSheet {
  /** `item`: what its source said of it. */
  add(event: BatchEvent, item: BatchItem | undefined): Promise<void>;
  finish(): Promise<string[]>;
}

const noSheet: BatchSheet = { add: async () => {}, finish: async () => [] };

export function followWithSheet({ graph, sheet: path, options, shown }: BatchPlan): BatchSheet {
  if (path === undefined) return noSheet;
  const sheet = createContactSheet(path, basename(graph));
  let finished: ReadonlyMap<number, readonly string[]> = new Map();
  return {
    async add(event, item) {
      if (event.type === "batch-start" && event.finished > 0) {
        finished = await finishedFiles(options.journal);
      } else if (event.type === "item-done") {
        const pictures = event.files.map(({ path }) => path).filter((path) => PNG.test(path));
        await sheet.add({ index: event.index, values: shown(event.values), pictures });
      } else if (event.type === "item-failed" && !event.willRetry) {
        await sheet.add({ index: event.index, values: shown(event.values), pictures: [], isFailed: true });
      } else if (event.type === "item-skipped") {
        const files = (finished.get(event.place) ?? []).filter((file) => PNG.test(file));
        const pictures = files.map((file) => join(options.outputDir, file));
        await sheet.add({ index: event.index, values: shown(item?.values ?? {}), pictures });
      }
    },
    finish: () => sheet.finish(),
  };
}
