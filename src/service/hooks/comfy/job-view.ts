import { basename } from "node:path";
import type { StoredEvent } from "../run.js";

/** Most outputs that a job shows. */
const MOST_OUTPUTS = 1000;

/** An output as its event tells it. */
export interface JobOutput {
  /** Id of the event; with the run's it is the id of the asset. */
  readonly eventId: number;
  readonly node: string;
  /** Name among the run's files. */
  readonly file: string;
}

/** Snapshot of a job's progress. `value` never falls. */
export interface JobProgress {
  readonly value: number;
  readonly nodesDone: number;
  readonly nodes: number;
  readonly node: string | null;
  readonly classType: string | null;
  readonly step: number | null;
  readonly steps: number | null;
}

/** A failed node, as its event tells it. */
export interface JobFailure {
  readonly node: string | null;
  readonly classType: string | null;
  readonly message: string;
}

const NONE: JobProgress = { value: 0, nodesDone: 0, nodes: 0, node: null, classType: null, step: null, steps: null };

/** The events of a run, folded into what a job shows. */
export class JobView {
  /** Id of the last event. */
  cursor = 0;
  progress: JobProgress | undefined;
  failure: JobFailure | undefined;
  readonly outputs: JobOutput[] = [];

  /** Takes the next event; returns what it changed. */
  take({ id, event, data }: StoredEvent): "progress" | "output" | undefined {
    this.cursor = id;
    if (event === "status") {
      // a start, and one after a lost worker
      this.progress = undefined;
      return undefined;
    }
    if (!["node_start", "progress", "node_done", "node_error", "image", "file"].includes(event)) return undefined;
    const fields = fieldsOf(data);
    const node = textOf(fields.node) ?? textOf(this.progress?.node) ?? null;
    const classType = textOf(fields.class_type) ?? null;
    if (event === "image" || event === "file") {
      const file = fileNameOf(fields.url);
      if (file === undefined || this.outputs.length >= MOST_OUTPUTS) return undefined;
      this.outputs.push({ eventId: id, node: node ?? "", file });
      return "output";
    }
    if (event === "node_error") {
      this.failure = { node, classType, message: String(fields.message ?? "") };
      return undefined;
    }
    this.#move(event, node, classType, fields);
    return "progress";
  }

  #move(event: string, node: string | null, classType: string | null, fields: Record<string, unknown>): void {
    const before = this.progress ?? NONE;
    const number = (value: unknown) => (Number.isSafeInteger(value) ? (value as number) : null);
    let next: JobProgress;
    if (event === "node_done") {
      const [nodesDone, nodes] = [number(fields.done) ?? before.nodesDone, number(fields.nodes) ?? before.nodes];
      next = { ...NONE, nodesDone, nodes, value: nodes === 0 ? 0 : nodesDone / nodes };
    } else if (event === "node_start") {
      next = { ...before, node, classType, step: null, steps: null };
    } else {
      const [step, steps] = [number(fields.value), number(fields.max)];
      const share = step === null || steps === null || steps <= 0 ? 0 : Math.min(1, step / steps);
      const value = before.nodes === 0 ? 0 : (before.nodesDone + share) / before.nodes;
      next = { ...before, node, classType: before.classType, step, steps, value };
    }
    this.progress = { ...next, value: Math.min(1, Math.max(0, before.value, next.value)) };
  }
}

const textOf = (value: unknown): string | undefined =>
  typeof value === "string" ? value : typeof value === "number" ? String(value) : undefined;

/** The fields of an event's data. */
export function fieldsOf(data: string): Readonly<Record<string, unknown>> {
  const parsed: unknown = JSON.parse(data);
  return typeof parsed === "object" && parsed !== null ? (parsed as Record<string, unknown>) : {};
}

/** Name among a run's files that an address in an event ends with. */
export function fileNameOf(url: unknown): string | undefined {
  try {
    return typeof url === "string" ? decodeURIComponent(basename(url)) : undefined;
  } catch {
    return undefined;
  }
}
