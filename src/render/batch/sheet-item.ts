import type { SheetItem } from "../contact-sheet/contact-sheet.js";
import type { BatchEvent } from "./events.js";

const PICTURE = /\.(png|webp|jpg|avif)$/i;

/** Result of an item as contact sheets and grids show it; undefined for an event that is no item's end. */
export function sheetItemOf(event: BatchEvent): SheetItem | undefined {
  if (event.type === "item-done" || event.type === "item-skipped") {
    const pictures = event.files.map(({ path }) => path).filter((path) => PICTURE.test(path));
    return { index: event.index, values: event.values, pictures };
  }
  if (event.type !== "item-failed" || event.willRetry) return undefined;
  return { index: event.index, values: event.values, pictures: [], isFailed: true };
}
