import { describe } from "../../base/errors.js";
import type { BatchEvent } from "../../render/batch/events.js";
import type { ItemValues } from "../../render/items/item.js";
import { batchLine } from "../event-json.js";
import { shortest } from "../render-options.js";
import { harmless, red, type Terminal } from "../terminal.js";
import type { BatchProgress } from "./batch-progress.js";

/** Distinct warnings that are printed; a batch may repeat one for each item. */
const MAX_WARNINGS = 50;
const MAX_VALUES = 3;
const MAX_VALUE_CHARACTERS = 40;

export interface Printer {
  /** `hasLines`: a file or stream holds the items, whose messages begin with a line of it. */
  print(event: BatchEvent, hasLines: boolean): void;
  /** Writes a line for a person. */
  report(text: string): void;
  /** Writes a line on an item that cannot be rendered, `which` in front of it. */
  fail(which: string, message: string): void;
  /** Writes a line of JSON, with --json. */
  json(line: string): void;
}

/** Prints files on stdout as they are done, or every event as JSON; failures and warnings on stderr, these each once. */
export function createPrinter(terminal: Terminal, progress: BatchProgress, isJson: boolean): Printer {
  const warnings = new Set<string>();
  const write = (line: string) => progress.printAbove(() => terminal.err(`${line}\n`));
  const report = (text: string) => write(harmless(text));
  const fail = (which: string, message: string) =>
    write(`${which === "" ? "" : `${red(terminal, harmless(which))}: `}${harmless(message)}`);
  return {
    report,
    fail,
    json: (line) => (isJson ? terminal.out(line) : undefined),
    print(event, hasLines) {
      if (isJson) terminal.out(batchLine(event));
      if (event.type === "item-failed" && !event.willRetry) {
        const values = hasLines ? "" : brief(event.values);
        fail(`Item ${event.index}${values === "" ? "" : ` (${values})`}`, event.error.message);
      } else if (isJson) return;
      else if (event.type === "item-done" && event.files.length > 0) {
        const lines = event.files.map(({ path }) => `${shortest(path)}\n`).join("");
        progress.printAbove(() => terminal.out(lines));
      } else if (event.type === "warning" && warnings.size < MAX_WARNINGS && !warnings.has(event.message)) {
        warnings.add(event.message);
        report(`Warning: ${event.message}`);
      }
    },
  };
}

function brief(values: ItemValues): string {
  const all = Object.entries(values);
  const pairs = all.slice(0, MAX_VALUES).map(([key, value]) => {
    const text = describe(value);
    return `${key} ${text.length > MAX_VALUE_CHARACTERS ? `${text.slice(0, MAX_VALUE_CHARACTERS)}…` : text}`;
  });
  return [...pairs, ...(all.length > MAX_VALUES ? ["…"] : [])].join(", ");
}
