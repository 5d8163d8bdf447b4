import { join } from "node:path";
import { interruption } from "../base/abort.js";
import type { LatentkitError } from "../base/errors.js";
import type { RunEvent, RunStatus } from "../graph/events.js";
import type { MemoryFiles } from "../io/files/output-files.js";
import { TEMPORARY } from "../nodes/core/save-files.js";

/** Result of `render`: files, values and times of one run. */
export interface RenderResult {
  readonly status: Exclude<RunStatus, "interrupted">;
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

/** Result of a run that may have been interrupted: what it left. */
export interface RunOutcome extends Omit<RenderResult, "status"> {
  readonly status: RunStatus;
}

/**
 * Returns the result of a run that has ended. Throws the signal's reason if that interrupted it, and run.interrupted
 * with the sentence if something else did.
 */
export function resultOf(outcome: RunOutcome, signal: AbortSignal | undefined, sentence: string): RenderResult {
  const { status } = outcome;
  if (status === "interrupted") throw interruption(signal, sentence);
  return { ...outcome, status };
}

/** Gathers a run's events into its outcome; `end` before the last event means that the run failed. `memory` has its files. */
export function createFold(outputDir: string, memory?: MemoryFiles) {
  const files: RenderedFile[] = [];
  const ui: Record<string, Record<string, unknown[]>> = {};
  const nodeMs: Record<string, number> = {};
  const warnings: string[] = [];
  let leftOut: readonly string[] = [];
  let error: LatentkitError | undefined;
  let outputs: Record<string, unknown[]> = {};
  let status: RunStatus = "failed";
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
    end: (): RunOutcome => ({
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

/** A file that a run wrote. */
export interface RenderedFile {
  /** Absolute; for a file in memory, the path that it would have. */
  readonly path: string;
  readonly filename: string;
  /** Folder below the root of its type, with "/" between names; "" for the root. */
  readonly subfolder: string;
  /** "output", or "temp" for previews. */
  readonly type: string;
  /** Content of a file that was not written: with `output: "memory"`. */
  readonly bytes?: Uint8Array;
}

/** A file by its path below the output folder, with "/". */
export function fileAt(path: string, outputDir: string): RenderedFile {
  const isTemporary = path.startsWith(`${TEMPORARY}/`);
  const names = path.split("/").slice(isTemporary ? 1 : 0);
  const filename = names.pop()!;
  return renderedFile(outputDir, isTemporary ? TEMPORARY : "output", names.join("/"), filename);
}

const renderedFile = (outputDir: string, type: string, subfolder: string, filename: string): RenderedFile => {
  const path = join(outputDir, type === TEMPORARY ? TEMPORARY : "", subfolder, filename);
  return { path, filename, subfolder, type };
};

/** Files named in a node's UI result: every entry with a filename, in any list. */
export function filesOf(ui: Readonly<Record<string, readonly unknown[]>>, outputDir: string): RenderedFile[] {
  const files: RenderedFile[] = [];
  for (const entry of Object.values(ui).flat()) {
    const { filename, subfolder = "", type = "output" } = (entry ?? {}) as Record<string, unknown>;
    if (typeof filename !== "string" || typeof subfolder !== "string" || typeof type !== "string") continue;
    files.push(renderedFile(outputDir, type, subfolder, filename));
  }
  return files;
}
