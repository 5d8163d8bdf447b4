import type { z } from "zod";
import { loadZod } from "../../../base/lazy.js";
import { HookError, undefinedFor } from "../hook-error.js";
import type { Call } from "../http/call.js";
import type { HookContext } from "../http/context.js";
import { contentTypeOf, kindOf, OUTPUT_KINDS } from "../http/routes/send-file.js";
import type { RunFile, RunStatus, RunSummary } from "../run.js";
import { maxRunSeconds } from "../runs/terms.js";
import { type JobOutput, type JobProgress, JobView } from "./job-view.js";

/** Jobs whose events are remembered, folded: the next look reads what is new. */
const MOST_VIEWS = 200;
// The id needs no row: it is that of the run and its event, and it is gone with the run.
/** Id of an output's asset: that of its run and of its event. */
const OUTPUT_ID = /^([0-9a-f-]{36})\.([1-9]\d{0,14})$/;

interface CachedView {
  readonly view: JobView;
  /** The reading that others wait for. */
  reading: Promise<void>;
  readonly sizes: Map<number, number>;
}

/** The runs of the Comfy API as its jobs. */
export class Jobs {
  readonly #context: HookContext;
  readonly #views = new Map<string, CachedView>();

  constructor(context: HookContext) {
    this.#context = context;
  }

  /** The status of a job's run. Fails with job_not_found, also for a run of a hook. */
  async status(id: string): Promise<RunStatus> {
    const status = await this.#context.runs.status(id);
    if (status.origin !== "comfy") throw new HookError("job_not_found");
    return status;
  }

  /** The job in the contract's form. */
  async json(call: Call, status: RunStatus): Promise<ComfyBody<"job">> {
    const { view } = await this.#readView(status.id);
    const outputs = await Promise.all(view.outputs.map((output) => this.outputJson(call, status, output)));
    const base = call.req.baseUrl;
    const { createdAt, startedAt, finishedAt } = status;
    const isSuccess = status.state === "succeeded";
    return {
      id: status.id,
      status: stateOf(status),
      created_at: isoTime(createdAt),
      started_at: startedAt === null ? null : isoTime(startedAt),
      completed_at: finishedAt === null ? null : isoTime(finishedAt),
      expires_at: isoTime(this.expiresAt(status)),
      queue_position: status.queuePosition,
      progress: progressJson(isSuccess ? complete(view.progress) : view.progress),
      outputs: outputs.filter((output) => output !== undefined),
      error: this.#errorJson(status, view),
      metrics: {
        queue_ms: startedAt === null ? null : Math.max(0, startedAt - createdAt),
        execution_ms: startedAt === null || finishedAt === null ? null : Math.max(0, finishedAt - startedAt),
      },
      urls: {
        self: `${base}/api/v2/jobs/${status.id}`,
        events: `${base}/api/v2/jobs/${status.id}/events`,
        cancel: `${base}/api/v2/jobs/${status.id}/cancel`,
      },
    };
  }

  /** One output; undefined where its file is gone. */
  async outputJson(call: Call, run: RunSummary, output: JobOutput): Promise<ComfyBody<"output"> | undefined> {
    const file = await this.#fileOf(run.id, output.file);
    if (file === undefined) return undefined;
    const size = await this.#sizeOf(run.id, output, file);
    if (size === undefined) return undefined;
    const id = `${run.id}.${output.eventId}`;
    const expiresAt = this.expiresAt(run);
    const contentType = file.contentType ?? contentTypeOf(file.name);
    return {
      node_id: output.node,
      name: file.name,
      type: kindOf(contentType, file.name),
      content_type: contentType,
      size_bytes: size,
      id,
      hash: null,
      url: this.contentUrl(call, id, expiresAt),
      url_expires_at: isoTime(expiresAt),
      job_id: run.id,
    };
  }

  /** The output that an asset's id names. Undefined where the id is of another form; fails with asset_not_found. */
  async findOutput(assetId: string): Promise<{ run: RunStatus; output: JobOutput; file: RunFile } | undefined> {
    const [, runId, event] = OUTPUT_ID.exec(assetId) ?? [];
    if (runId === undefined) return undefined;
    const run = await this.status(runId).catch(undefinedFor("run_not_found", "job_not_found"));
    if (run === undefined) throw new HookError("asset_not_found");
    const eventId = Number(event);
    const stored = (await this.#context.runs.read(runId, eventId - 1)).events[0];
    const view = new JobView();
    if (stored?.id === eventId) view.take(stored);
    const [output] = view.outputs;
    const file = output && (await this.#fileOf(runId, output.file));
    if (output === undefined || file === undefined) throw new HookError("asset_not_found");
    return { run, output, file };
  }

  // Paths, though the contract has whole addresses: the SDK takes paths.
  /**
   * Address of an asset's bytes, which needs no token until `expiresAt`; without a configured address, its path alone: a
   * client's Host header would lead readers to a host of the client's choice.
   */
  contentUrl({ req }: Pick<Call, "req">, assetId: string, expiresAt: number): string {
    const query = new URLSearchParams({ ...this.#context.signer.sign(assetId, expiresAt / 1000) });
    return `${this.#context.config.web.public_url ?? req.baseUrl}/api/v2/assets/${assetId}/content?${query}`;
  }

  /** The same in every answer: after the longest wait, run and retention. */
  expiresAt({ createdAt }: Pick<RunSummary, "createdAt">): number {
    const { limits } = this.#context.config;
    return createdAt + (limits.queue_seconds + maxRunSeconds(limits) + limits.retention_hours * 3600) * 1000;
  }

  async #fileOf(runId: string, name: string): Promise<RunFile | undefined> {
    return this.#context.runs.file(runId, name).catch(undefinedFor("not_found"));
  }

  async #sizeOf(runId: string, { eventId }: JobOutput, file: RunFile): Promise<number | undefined> {
    const sizes = this.#views.get(runId)?.sizes;
    const known = sizes?.get(eventId);
    if (known !== undefined) return known;
    const opened = await this.#context.files.open(file, { headOnly: true }).catch(undefinedFor("not_found"));
    if (opened === undefined) return undefined;
    await opened.close();
    sizes?.set(eventId, opened.size);
    return opened.size;
  }

  async #readView(id: string): Promise<CachedView> {
    const cached = this.#views.get(id) ?? { view: new JobView(), reading: Promise.resolve(), sizes: new Map() };
    this.#views.delete(id);
    this.#views.set(id, cached);
    if (this.#views.size > MOST_VIEWS) this.#views.delete(this.#views.keys().next().value!);
    const reading = cached.reading
      .catch(() => undefined)
      .then(() => this.readUpTo(id, cached.view, Number.MAX_SAFE_INTEGER));
    cached.reading = reading;
    await reading;
    return cached;
  }

  /** Reads the events that a view lacks, up to an id. */
  async readUpTo(id: string, view: JobView, last: number): Promise<void> {
    while (view.cursor < last) {
      const { events } = await this.#context.runs.read(id, view.cursor);
      if (events.length === 0) return;
      for (const event of events) if (event.id <= last) view.take(event);
    }
  }

  #errorJson({ state, error }: RunStatus, { failure }: JobView): ComfyBody<"job">["error"] {
    if (error === null) return null;
    if (state !== "failed") return { code: state, message: error.error };
    const { node = null, classType = null } = failure ?? {};
    return { code: "node_execution_error", message: error.error, node_id: node, class_type: classType };
  }
}

export const isoTime = (ms: number): string => new Date(ms).toISOString();

/** State of a run under the contract's names. */
export function stateOf({ state }: Pick<RunSummary, "state">): JobState {
  if (state === "cancelled") return "canceled";
  return state === "timed_out" || state === "interrupted" ? "failed" : state;
}

const complete = (progress: JobProgress | undefined): JobProgress | undefined => progress && { ...progress, value: 1 };

export const progressJson = (progress: JobProgress | undefined): ComfyBody<"progress"> | null =>
  progress === undefined
    ? null
    : {
        value: progress.value,
        nodes_done: progress.nodesDone,
        nodes_total: progress.nodes,
        current_node: progress.node,
        current_node_class: progress.classType,
        step: progress.step,
        steps: progress.steps,
      };

/** States of a job, by the contract's names. */
const JOB_STATES = ["queued", "running", "succeeded", "failed", "canceled", "expired"] as const;
type JobState = (typeof JOB_STATES)[number];

/** The bodies of the Comfy API. */
export function comfySchemas() {
  const { z } = loadZod();
  const time = z.iso.datetime();
  const output = z.object({
    node_id: z.string(),
    name: z.string(),
    type: z.enum(OUTPUT_KINDS),
    content_type: z.string(),
    size_bytes: z.int(),
    id: z.string().meta({ description: "Id of the asset, which a workflow may refer to." }),
    hash: z.null(),
    url: z.string().meta({ description: "Signed." }),
    url_expires_at: time,
    job_id: z.uuid(),
  });
  const progress = z.object({
    value: z.number().meta({ description: "0 to 1; it never falls." }),
    nodes_done: z.int(),
    nodes_total: z.int(),
    current_node: z.string().nullable(),
    current_node_class: z.string().nullable(),
    step: z.int().nullable(),
    steps: z.int().nullable(),
  });
  const error = z.object({
    code: z.string(),
    message: z.string(),
    node_id: z.string().nullish(),
    class_type: z.string().nullish(),
  });
  return {
    output,
    progress,
    job: z
      .object({
        id: z.uuid(),
        status: z.enum(JOB_STATES),
        created_at: time,
        started_at: time.nullable(),
        completed_at: time.nullable(),
        expires_at: time,
        queue_position: z.int().nullable(),
        progress: progress.nullable(),
        outputs: z.array(output),
        error: error.nullable(),
        metrics: z.object({ queue_ms: z.int().nullable(), execution_ms: z.int().nullable() }),
        urls: z.object({ self: z.string(), events: z.string(), cancel: z.string() }),
      })
      .meta({ id: "Job" }),
    asset: z
      .object({
        id: z.string(),
        hash: z.string().nullable().meta({ description: "BLAKE3 of the bytes; null: an output of a job." }),
        size_bytes: z.int(),
        content_type: z.string(),
        file_path: z.string().nullable(),
        created_new: z.boolean().optional().meta({ description: "Of an upload: its bytes were not there before." }),
        created_at: time,
        url: z.string().meta({ description: "Signed." }),
        url_expires_at: time,
        expires_at: time,
        job_id: z.uuid().nullable(),
      })
      .meta({ id: "Asset" }),
  };
}

/** A body of the Comfy API. */
export type ComfyBody<Name extends keyof ReturnType<typeof comfySchemas>> = z.output<
  ReturnType<typeof comfySchemas>[Name]
>;
