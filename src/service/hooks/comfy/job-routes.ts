import { setImmediate as nextTurn } from "node:timers/promises";
import { LatentkitError } from "../../../base/errors.js";
import { loadZod } from "../../../base/lazy.js";
import { printJsonUnicode } from "../../../io/json/lossless.js";
import { isTag, TAG_FAULT, TAGS } from "../../../render/config/run-terms.js";
import type { AgentGraphs } from "../../agent/agent.js";
import { mayReferToAssets, reference, replaceReferences } from "../../agent/asset-references.js";
import { asRefusal, HookError, refusedAs, undefinedFor } from "../hook-error.js";
import { decodeJson, readBodyBytes } from "../http/body.js";
import type { Call } from "../http/call.js";
import type { HookContext } from "../http/context.js";
import { readIdempotencyKey, traceparentOf, waitSeconds } from "../http/request-headers.js";
import { sendBytes, sendJson } from "../http/responses.js";
import { idempotencyOf, startBodyLimits, waitForEnd } from "../http/routes/start.js";
import { requestedSessions } from "../webhooks/endpoints.js";
import type { ComfyParts, ComfyRoute } from "./comfy-parts.js";
import { type ReservedField, readSubmission, refuseInvalid } from "./submission.js";

/** Age at which a job is no longer young: until then, looks at it wait for its end. */
const YOUNG_MS = 1000;
const LONGEST_WAIT_SECONDS = 30;
/** Most assets that one workflow may refer to. */
const MOST_ASSETS = 256;

/** The routes of jobs, without their events. */
export function jobRoutes(context: HookContext, parts: ComfyParts): ComfyRoute[] {
  const { runs } = context;
  const { jobs } = parts;

  const send = async (call: Call, id: string, status = 200, headers = {}) => {
    const body = await jobs.json(call, await jobs.status(id));
    sendJson(call.req, call.res, { status, body, headers });
  };

  const { comfy_inputs, webhooks } = context.config.web;
  /** Beginnings of the sessions of jobs that name a webhook, by its address. */
  const prefixes = requestedSessions(webhooks);
  const reserved = new Set<ReservedField>();
  if (comfy_inputs) reserved.add("inputs");
  if (prefixes.size > 0) reserved.add("webhook_url");
  const prefixOf = (address: string): string => {
    const prefix = URL.canParse(address) ? prefixes.get(new URL(address).href) : undefined;
    if (prefix !== undefined) return prefix;
    throw new HookError("invalid_workflow", "webhook_url: no configured webhook with on_request has this address");
  };

  const maxBytes = context.config.limits.comfy_body_bytes;
  const submit = async (call: Call) => {
    const { req, tokenId, query } = call;
    const tags = readTags(query.getAll("tag"));
    const bodyLimits = { ...startBodyLimits(context), maxBytes };
    const text = decodeJson(await readBodyBytes(req, call.res, bodyLimits));
    const key = readIdempotencyKey(req, undefined);
    const { workflow, inputs, webhookUrl } = readSubmission(text, req.headers["user-agent"], reserved);
    // a large graph takes a tenth of a second at each step: other requests have their turn in between
    await nextTurn();
    const fill = () => parts.graphs.fill(workflow, inputs ?? {}) as Record<string, unknown>;
    const filled = inputs === undefined ? workflow : asRefusal("invalid_workflow", fill, "inputs: ");
    const completed = await withHashes(parts, filled);
    await nextTurn();
    const graph = { name: null, text: printJsonUnicode(completed) };
    // a front end has no models, and cannot tell which of their names are right
    if (context.rendersHere) await validate(parts.graphs, completed, graph.text);
    await nextTurn();
    const sessionKey = `${webhookUrl === undefined ? "comfy:" : prefixOf(webhookUrl)}${context.newId()}`;
    const start = { origin: "comfy", message: "", sessionKey, graph, tags, traceparent: traceparentOf(req) } as const;
    const started = await runs.start(start, {
      // any repetition is refused, whatever it holds
      idempotency: idempotencyOf(key, { tokenId, endpoint: "v2/jobs", payloadHash: "" }),
      admit: () => context.startRates.count(tokenId, [sessionKey]),
    });
    const location = { Location: `${req.baseUrl}/api/v2/jobs/${started.runId}` };
    if (started.replayed) {
      const details = { job_id: started.runId };
      throw new HookError("idempotency_key_reuse", undefined, { details, headers: location });
    }
    await send(call, started.runId, 201, location);
  };

  const look = async (call: Call) => {
    const { req, res, params } = call;
    const id = params.id!;
    const status = await jobs.status(id);
    const preferred = waitSeconds(req.headers.prefer?.toString());
    const youth = (YOUNG_MS - (runs.now() - status.createdAt)) / 1000;
    const seconds =
      preferred === undefined ? Math.min(youth, YOUNG_MS / 1000) : Math.min(preferred, LONGEST_WAIT_SECONDS);
    if (status.finishedAt === null && seconds > 0) await waitForEnd(context, res, id, seconds);
    if (!res.destroyed) await send(call, id);
  };

  const workflow = async ({ req, res, params }: Call) => {
    const id = params.id!;
    await jobs.status(id);
    const { graph } = await runs.get(id);
    // every digit of it
    const bytes = Buffer.from(`{"workflow":${graph?.text ?? "{}"},"format":"api"}`);
    sendBytes(req, res, { status: 200, bytes });
  };

  const cancel = async (call: Call) => {
    const id = call.params.id!;
    await jobs.status(id);
    await runs.cancel(id);
    await send(call, id);
  };

  const { z } = loadZod();
  const any = z.looseObject({});
  const { key, wait } = context.parameters;
  const { job } = parts.bodies;
  const ofOne = { responses: { 200: { json: job } }, refusals: ["job_not_found"] } as const;
  return [
    {
      name: "v2_jobs",
      paths: ["/api/v2/jobs"],
      method: "POST",
      summary: "Start a job: a run of the graph that the body brings",
      query: { tag: z.array(z.string()).optional().meta({ description: "Tags of the run." }) },
      headers: key,
      body: {
        schema: z.object({
          workflow: any.meta({ description: "A graph in API format." }),
          inputs: any.optional().meta({ description: "Values of parameters, where comfy_inputs allows it." }),
          webhook_url: z.string().optional().meta({ description: "Address of a webhook with on_request." }),
          extra_data: any.optional().meta({ description: "Checked and forgotten." }),
        }),
      },
      responses: { 201: { json: job } },
      refusals: [
        "invalid_workflow",
        "workflow_format_ui",
        "missing_asset",
        "idempotency_key_reuse",
        "storage_full",
        "rate_limited",
        "queue_full",
        "shutting_down",
      ],
      handle: submit,
    },
    {
      name: "v2_job",
      paths: ["/api/v2/jobs/:id"],
      method: "GET",
      summary: "Show a job, a young one once it has ended or is a second old",
      headers: { Prefer: wait.Prefer },
      ...ofOne,
      handle: look,
    },
    {
      name: "v2_workflow",
      paths: ["/api/v2/jobs/:id/workflow"],
      method: "GET",
      summary: "Show the graph of a job, with every digit",
      ...ofOne,
      responses: { 200: { json: z.object({ workflow: any, format: z.literal("api") }) } },
      handle: workflow,
    },
    {
      name: "v2_cancel",
      paths: ["/api/v2/jobs/:id/cancel"],
      method: "POST",
      summary: "Cancel a job; an ended one stays as it is",
      ...ofOne,
      handle: cancel,
    },
  ];
}

/** Tags of a job, which the contract does not have. Fails with invalid_workflow. */
function readTags(tags: readonly string[]): string[] {
  if (tags.length > TAGS.most) throw new HookError("invalid_workflow", `tag: expected at most ${TAGS.most} of them`);
  if (!tags.every(isTag)) throw new HookError("invalid_workflow", `tag: ${TAG_FAULT}`);
  return [...new Set(tags)];
}

/** The workflow with the hash in each of its references. Fails with missing_asset. */
async function withHashes(parts: ComfyParts, workflow: Record<string, unknown>): Promise<Record<string, unknown>> {
  const hashes = new Map<string, string | undefined>();
  const completed = await replaceReferences(workflow, async (info) => {
    const id = typeof info?.id === "string" ? info.id : "";
    if (!hashes.has(id)) {
      if (hashes.size >= MOST_ASSETS) {
        throw new HookError("invalid_workflow", `the workflow refers to more than ${MOST_ASSETS} assets`);
      }
      hashes.set(id, await retainedHash(parts, id));
    }
    return reference({ ...info, hash: hashes.get(id) });
  });
  const missing = [...hashes].filter(([, hash]) => hash === undefined).map(([id]) => id);
  if (missing.length === 0) return completed;
  const sentence = `the workflow refers to ${missing.length} assets that do not exist`;
  throw new HookError("missing_asset", sentence, { details: { missing_ids: missing } });
}

/** Hash of an asset, whose bytes stay while a job may need them; undefined where it does not exist. */
async function retainedHash({ jobs, assets, keepOutput }: ComfyParts, id: string): Promise<string | undefined> {
  const output = await jobs.findOutput(id).catch(undefinedFor("asset_not_found", "run_not_found"));
  const asset = output === undefined ? await assets.find(id) : undefined;
  const hash = output === undefined ? asset?.hash : await keepOutput(output.file).catch(undefinedFor("not_found"));
  return hash !== undefined && (await assets.retain(hash)) ? hash : undefined;
}

async function validate(graphs: AgentGraphs, graph: object, text: string): Promise<void> {
  try {
    refuseInvalid(await graphs.validate(graph));
  } catch (error) {
    const isAsset = mayReferToAssets(text) && error instanceof LatentkitError && error.code === "file.not-found";
    throw refusedAs(isAsset ? "missing_asset" : "invalid_workflow", error);
  }
}
