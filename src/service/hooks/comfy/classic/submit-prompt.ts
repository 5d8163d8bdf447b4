import { createHash } from "node:crypto";
import { setImmediate as nextTurn } from "node:timers/promises";
import { loadZod } from "../../../../base/lazy.js";
import { refuseNonFinite } from "../../../../graph/parse.js";
import type { GraphError, NodeErrors } from "../../../../graph/validation/graph-error.js";
import { refuseReservedKeys } from "../../../../io/files/save-images.js";
import { isPlainObject, parseJson, printJson, printJsonUnicode } from "../../../../io/json/lossless.js";
import { checkTextKey } from "../../../../io/png/text-chunks.js";
import type { AgentGraphs, PromptFacts } from "../../../agent/agent.js";
import { asRefusal, HookError, refusedAs } from "../../hook-error.js";
import { decodeJson, readBodyBytes } from "../../http/body.js";
import type { Call } from "../../http/call.js";
import type { HookContext } from "../../http/context.js";
import { traceparentOf } from "../../http/request-headers.js";
import { sendBytes } from "../../http/responses.js";
import { startBodyLimits } from "../../http/routes/start.js";
import type { StartRequest } from "../../runs/run-starter.js";
import type { ClassicRoute } from "../comfy-parts.js";
import { flagOf } from "./classic-routes.js";
import type { InputNames } from "./input-names.js";
import { numberOf, type Prompts, readClientId, TAG } from "./prompts.js";
import type { Publisher } from "./publisher.js";

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/;
const MOST_TARGETS = 10_000;
const MOST_TEXTS = 32;

// Facts of the client are a text field of the run, and its history a fold of the events: no table of its own.
/** The route that starts a prompt: a run of the graph that the body brings, with facts of its client beside it. */
export function submitRoute(
  context: HookContext,
  graphs: AgentGraphs,
  { prompts, publisher, names }: { prompts: Prompts; publisher: Publisher; names: InputNames },
): ClassicRoute {
  const { runs, startRates } = context;

  const submit = async (call: Call) => {
    const { req, res } = call;
    const maxBytes = context.config.limits.comfy_body_bytes;
    const limits = { ...startBodyLimits(context), maxBytes, takesAnyType: true };
    const { graph, promptId, ...facts } = readPrompt(decodeJson(await readBodyBytes(req, res, limits)), graphs);
    // a large graph takes a tenth of a second at each step: other requests have their turn in between
    await nextTurn();
    await names.resolve(graph);
    await nextTurn();
    const { outputs, nodeErrors } = await check(graph, facts);
    await nextTurn();
    const text = printJsonUnicode(graph);
    await nextTurn();
    const id = promptId ?? context.newId();
    const number = await start(call, text, { ...facts, outputs }, { id, isOwnId: promptId !== undefined });
    void publisher.follow(id, facts.clientId, res);
    const body = printJson({ prompt_id: id, number, node_errors: nodeErrors });
    sendBytes(req, res, { status: 200, bytes: Buffer.from(body) });
  };

  const check = async (
    graph: Record<string, unknown>,
    { targets }: Pick<PromptFacts, "targets">,
  ): Promise<{ outputs: readonly string[]; nodeErrors: Record<string, unknown> }> => {
    // a front end has no models, and cannot tell which of their names are right
    if (!context.rendersHere) return { outputs: targets ?? outputsOf(graph), nodeErrors: {} };
    const validation = await graphs.validate(graph, targets ?? undefined).catch((error: unknown) => {
      throw refusedAs("invalid_prompt", error);
    });
    const nodeErrors = nodeErrorsJson(validation.nodeErrors);
    // nodes of a setup module are known in its threads alone
    if (validation.ok)
      return { outputs: validation.outputs.length > 0 ? validation.outputs : outputsOf(graph), nodeErrors };
    const { type, message, ...facts } = errorJson(validation.error);
    throw new HookError("invalid_prompt", message, { code: type, details: { ...facts, node_errors: nodeErrors } });
  };
  const outputsOf = (graph: Record<string, unknown>) =>
    Object.entries(graph).flatMap(([id, node]) => (isPlainObject(node) && isOutput(node.class_type) ? [id] : []));
  /** Whether classes are outputs, of those that exist. */
  const known = new Map<unknown, boolean>();
  const isOutput = (classType: unknown): boolean => {
    const isNew = typeof classType === "string" && !known.has(classType);
    const description = isNew ? graphs.describe(classType) : undefined;
    if (description !== undefined) known.set(classType, description.output_node);
    return known.get(classType) ?? false;
  };

  /** Starts a prompt, which is withheld until it is published. Returns its number. */
  const start = async (
    { req, tokenId }: Call,
    text: string,
    facts: PromptFacts,
    { id, isOwnId }: { id: string; isOwnId: boolean },
  ): Promise<number> => {
    const { clientId, isFront } = facts;
    if (!prompts.withhold(id)) throw usedId();
    try {
      const sessionKey = `comfy:${clientId === "" ? id : digest(clientId)}`;
      const request: StartRequest = {
        id,
        origin: "comfy",
        message: "",
        sessionKey,
        tags: [TAG],
        priority: isFront ? 1 : 0,
        graph: { name: null, text },
        promptFacts: printJsonUnicode(facts),
        traceparent: traceparentOf(req),
      };
      const started = await runs.start(request, {
        idempotency: isOwnId ? { key: id, tokenId, endpoint: "prompt", payloadHash: "" } : undefined,
        admit: () => startRates.count(tokenId, [sessionKey]),
      });
      if (started.replayed) throw usedId();
      return numberOf(await runs.status(id), isFront);
    } catch (error) {
      prompts.publish(id);
      throw error;
    }
  };

  const { z } = loadZod();
  const any = z.looseObject({});
  return {
    name: "prompt",
    operation: "comfy_submit",
    path: "/prompt",
    method: "POST",
    summary: "Start a prompt: a graph in API format or as the editor saves it; `prompt_id` is a UUID in lower case",
    body: {
      schema: z.object({
        prompt: any,
        prompt_id: z.uuid().optional(),
        client_id: z.string().optional(),
        front: z.boolean().optional(),
        partial_execution_targets: z.array(z.string()).optional(),
        extra_data: any.optional().meta({ description: "extra_pnginfo has texts for pictures." }),
      }),
    },
    responses: { 200: { json: z.object({ prompt_id: z.uuid(), number: z.number(), node_errors: any }) } },
    refusals: ["invalid_prompt", "no_prompt", "invalid_prompt_id", "rate_limited", "queue_full"],
    handle: submit,
  };
}

const usedId = () => new HookError("invalid_prompt_id", "prompt_id: this id is already in use");

const digest = (text: string) => createHash("sha256").update(text).digest("hex").slice(0, 32);

/** A prompt as its client sent it. */
interface PromptRequest extends Omit<PromptFacts, "outputs"> {
  /** In API format. */
  readonly graph: Record<string, unknown>;
  /** Undefined where the client leaves it to the service. */
  readonly promptId: string | undefined;
}

/** Reads the body of a prompt. Throws ComfyUI's types of errors. */
function readPrompt(text: string, graphs: AgentGraphs): PromptRequest {
  // Python writes NaN
  const body = asRefusal("invalid_prompt", () => parseJson(text, { what: "The body", nonFinite: true }));
  if (!isPlainObject(body)) throw new HookError("invalid_prompt", "The body: expected a JSON object with prompt");
  const { prompt, prompt_id: promptId, client_id: clientId } = body;
  if (!isPlainObject(prompt)) throw new HookError("no_prompt");
  if (promptId != null && (typeof promptId !== "string" || !UUID.test(promptId))) {
    throw new HookError("invalid_prompt_id", "prompt_id: expected a UUID in lower case");
  }
  const graph = asRefusal("invalid_prompt", () => graphs.toApi(prompt)) as Record<string, unknown>;
  asRefusal("invalid_prompt", () => refuseNonFinite(graph));
  const extraPnginfo = extraPnginfoOf(body.extra_data);
  return {
    graph,
    promptId: promptId ?? undefined,
    clientId: readClientId(clientId, "client_id") ?? "",
    isFront: flagOf(body, "front"),
    targets: targetsOf(body.partial_execution_targets),
    extraPnginfo:
      graph === prompt || extraPnginfo.workflow != null ? extraPnginfo : { ...extraPnginfo, workflow: prompt },
  };
}

function targetsOf(value: unknown): readonly string[] | null {
  if (value == null) return null;
  if (Array.isArray(value) && value.length <= MOST_TARGETS && value.every((id) => typeof id === "string")) return value;
  throw new HookError("invalid_prompt", "partial_execution_targets: expected a list of node ids");
}

/** Texts for pictures. All else of `extra_data`, which may hold keys of other services, is forgotten. */
function extraPnginfoOf(extraData: unknown): Record<string, unknown> {
  const texts = isPlainObject(extraData) ? extraData.extra_pnginfo : undefined;
  if (texts == null) return {};
  if (!isPlainObject(texts)) throw new HookError("invalid_prompt", "extra_data.extra_pnginfo: expected an object");
  const entries = Object.entries(texts).filter(([, value]) => value != null);
  if (entries.length > MOST_TEXTS) {
    throw new HookError("invalid_prompt", `extra_data.extra_pnginfo: expected at most ${MOST_TEXTS} keys`);
  }
  const check = () => {
    refuseReservedKeys(texts);
    for (const [key] of entries) checkTextKey(key);
  };
  asRefusal("invalid_prompt", check, "extra_data.extra_pnginfo: ");
  return Object.fromEntries(entries);
}

/** Errors of nodes in ComfyUI's fields alone. */
const nodeErrorsJson = (nodeErrors: Readonly<Record<string, NodeErrors>>): Record<string, unknown> =>
  Object.fromEntries(
    Object.entries(nodeErrors).map(([id, { errors, ...rest }]) => [id, { errors: errors.map(errorJson), ...rest }]),
  );

const errorJson = ({ type, message, details, extra_info }: GraphError) => ({
  type,
  message,
  details,
  extra_info,
});
