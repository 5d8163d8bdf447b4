import { LatentkitError } from "../../../../base/errors.js";
import { refuseNonFinite } from "../../../../graph/numbers.js";
import type { GraphError, NodeErrors } from "../../../../graph/validation/graph-error.js";
import { refuseReservedKeys } from "../../../../io/files/save-images.js";
import { isPlainObject, parseJson } from "../../../../io/json/lossless.js";
import { checkTextKey } from "../../../../io/png/text-chunks.js";
import type { AgentGraphs } from "../../../agent.js";
import type { PromptFacts } from "../../../prompt-facts.js";
import { HookError } from "../../hook-error.js";

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/;
const MOST_ID_CHARACTERS = 256;
const MOST_TARGETS = 10_000;
const MOST_TEXTS = 32;

/** A prompt as its client sent it. */
export interface PromptRequest extends Omit<PromptFacts, "outputs"> {
  /** In API format. */
  readonly graph: Record<string, unknown>;
  /** Undefined where the client leaves it to the service. */
  readonly promptId: string | undefined;
}

/** The body of a prompt. Fails with ComfyUI's types of errors. */
export function readPromptRequest(text: string, graphs: AgentGraphs): PromptRequest {
  const body = parse(text);
  if (!isPlainObject(body)) throw new HookError("invalid_prompt", "The body: expected a JSON object with prompt");
  const { prompt, prompt_id: promptId, client_id: clientId } = body;
  if (!isPlainObject(prompt)) throw new HookError("no_prompt");
  if (promptId != null && (typeof promptId !== "string" || !UUID.test(promptId))) {
    throw new HookError("invalid_prompt_id", "prompt_id: expected a UUID in lower case");
  }
  const graph = toApi(prompt, graphs);
  const extraPnginfo = extraPnginfoOf(body.extra_data);
  return {
    graph,
    promptId: promptId ?? undefined,
    clientId: readClientId(clientId) ?? "",
    isFront: body.front === true,
    targets: targetsOf(body.partial_execution_targets),
    extraPnginfo:
      graph === prompt || extraPnginfo.workflow != null ? extraPnginfo : { ...extraPnginfo, workflow: prompt },
  };
}

/** A client's name for itself; undefined for none, and for a text that is none. */
export const readClientId = (value: unknown): string | undefined =>
  typeof value === "string" && value !== "" && value.length <= MOST_ID_CHARACTERS && !/\p{Cc}/u.test(value)
    ? value
    : undefined;

function parse(text: string): unknown {
  try {
    // Python writes NaN
    return parseJson(text, { what: "The body", nonFinite: true });
  } catch (error) {
    if (!(error instanceof LatentkitError)) throw error;
    throw new HookError("invalid_prompt", error.message);
  }
}

function toApi(prompt: Record<string, unknown>, graphs: AgentGraphs): Record<string, unknown> {
  try {
    const graph = graphs.toApi(prompt) as Record<string, unknown>;
    refuseNonFinite(graph);
    return graph;
  } catch (error) {
    if (!(error instanceof LatentkitError)) throw error;
    throw new HookError("invalid_prompt", error.message);
  }
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
  try {
    refuseReservedKeys(texts);
    for (const [key] of entries) checkTextKey(key);
  } catch (error) {
    if (!(error instanceof LatentkitError)) throw error;
    throw new HookError("invalid_prompt", `extra_data.extra_pnginfo: ${error.message}`);
  }
  return Object.fromEntries(entries);
}

/** Errors of nodes in ComfyUI's fields alone. */
export const nodeErrorsJson = (nodeErrors: Readonly<Record<string, NodeErrors>>): Record<string, unknown> =>
  Object.fromEntries(
    Object.entries(nodeErrors).map(([id, { errors, ...rest }]) => [id, { errors: errors.map(errorJson), ...rest }]),
  );

export const errorJson = ({ type, message, details, extra_info }: GraphError) => ({
  type,
  message,
  details,
  extra_info,
});
