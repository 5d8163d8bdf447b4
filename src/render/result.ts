import type { LatentkitError } from "../base/errors.js";
import type { RunEvent } from "../graph/events.js";
import type { MemoryFiles } from "../io/files/memory-files.js";
import { filesOf, type RenderedFile } from "./files.js";

/** Result of `render`: files, values and times of one run. */
export interface RenderResult {
  readonly status: "success" | "failed" | "interrupted";
  /** Every file written, also by a run that failed later. */
  readonly files: readonly RenderedFile[];
  /** UI results by node id. */
  readonly ui: Readonly<Record<string, Readonly<Record<string, unknown[]>>>>;
  /** Values of the targets by node id, in output order. */
  readonly outputs: Readonly<Record<string, unknown[]>>;
  readonly nodeMs: Readonly<Record<string, number>>;
  readonly warnings: readonly string[];
  /** With `partial`: ids of the outputs that were left out. */
  readonly leftOut: readonly string[];
  /** Why the run failed. */
  readonly error?: LatentkitError;
}

/** Gathers a run's events into its result; `end` before the last event means that the run failed. `memory` has its files. */
export function createFold(outputDir: string, memory?: MemoryFiles) {
  const files: RenderedFile[] = [];
  const ui: Record<string, Record<string, unknown[]>> = {};
  const nodeMs: Record<string, number> = {};
  const warnings: string[] = [];
  let leftOut: readonly string[] = [];
  let error: LatentkitError | undefined;
  let outputs: Record<string, unknown[]> = {};
  let status: RenderResult["status"] = "failed";
  return {
    add(event: RunEvent) {
      if (event.type === "node-done") {
        nodeMs[event.nodeId] = event.ms;
        if (event.ui === undefined) return;
        ui[event.nodeId] = event.ui;
        files.push(...filesOf(event.ui, outputDir));
      } else if (event.type === "node-error") error ??= event.error;
      else if (event.type === "warning") warnings.push(event.message);
      else if (event.type === "run-start") leftOut = event.leftOut ?? [];
      else if (event.type === "run-done") ({ status, outputs } = event);
    },
    end: (): RenderResult => ({
      status,
      files: memory === undefined ? files : files.map((file) => ({ ...file, bytes: memory.bytesOf(file.path) })),
      ui,
      outputs,
      nodeMs,
      warnings,
      leftOut,
      error: status === "failed" ? error : undefined,
    }),
  };
}
