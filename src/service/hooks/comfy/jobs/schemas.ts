import type { z } from "zod";
import { loadZod } from "../../../../base/lazy-packages.js";
import { KINDS } from "../content-type.js";

/** States of a job, by the contract's names. */
const JOB_STATES = ["queued", "running", "succeeded", "failed", "canceled", "expired"] as const;
export type JobState = (typeof JOB_STATES)[number];

/** The bodies of the Comfy API. */
export function comfySchemas() {
  const { z } = loadZod();
  const time = z.iso.datetime();
  const output = z.object({
    node_id: z.string(),
    name: z.string(),
    type: z.enum(KINDS),
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
