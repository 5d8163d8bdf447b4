import { refuseNonFinite } from "../../../graph/parse.js";
import type { Validation } from "../../../graph/validate.js";
import { isPlainObject, parseJson } from "../../../io/json/lossless.js";
import { asRefusal, HookError } from "../hook-error.js";

const FROM_JAVASCRIPT = /^comfy-sdk-typescript\//;

/** Fields of a job that the contract reserves, where the configuration allows them. */
export type ReservedField = "inputs" | "webhook_url";

const RESERVED: ReadonlySet<string> = new Set<ReservedField>(["inputs", "webhook_url"]);

/** A request for a job: a graph in API format, values for its parameters, and the address that is told of its end. */
export interface Submission {
  readonly workflow: Record<string, unknown>;
  readonly inputs: Record<string, unknown> | undefined;
  readonly webhookUrl: string | undefined;
}

/** Reads a request for a job. Fails with invalid_workflow and workflow_format_ui. */
export function readSubmission(
  text: string,
  userAgent: string | undefined,
  allowed: ReadonlySet<ReservedField>,
): Submission {
  // Python writes NaN
  const body = asRefusal("invalid_workflow", () => parseJson(text, { what: "the body", nonFinite: true }));
  if (!isPlainObject(body)) throw new HookError("invalid_workflow", "the body: expected a JSON object with workflow");
  for (const key of Object.keys(body)) {
    if (key === "workflow" || key === "extra_data" || allowed.has(key as ReservedField)) continue;
    // generated clients write null for what they do not send
    if (RESERVED.has(key) && body[key] === null) continue;
    const what = RESERVED.has(key)
      ? "is disabled: set comfy_inputs, or on_request of a webhook"
      : "is not a field of a job";
    throw new HookError("invalid_workflow", `${JSON.stringify(key.slice(0, 80))} ${what}`);
  }
  checkExtraData(body.extra_data);
  const { workflow } = body;
  const [inputs, webhookUrl] = [body.inputs ?? undefined, body.webhook_url ?? undefined];
  if (inputs !== undefined && !isPlainObject(inputs)) {
    throw new HookError("invalid_workflow", "inputs: expected an object that maps names to values");
  }
  if (webhookUrl !== undefined && typeof webhookUrl !== "string") {
    throw new HookError("invalid_workflow", "webhook_url: expected a text");
  }
  if (!isPlainObject(workflow)) throw new HookError("invalid_workflow", "workflow: expected a graph in API format");
  if (Array.isArray(workflow.nodes) && Array.isArray(workflow.links)) throw new HookError("workflow_format_ui");
  asRefusal("invalid_workflow", () => refuseNonFinite(workflow));
  if (FROM_JAVASCRIPT.test(userAgent ?? ""))
    for (const [key, value] of Object.entries({ workflow, inputs })) refuseRounded(value, key);
  return { workflow, inputs, webhookUrl };
}

/** It may hold a key of another service: it is checked and forgotten. */
function checkExtraData(value: unknown): void {
  if (value === undefined || value === null) return;
  const isKnown =
    isPlainObject(value) &&
    Object.entries(value).every(([key, entry]) => key === "api_key_comfy_org" && typeof entry === "string");
  if (!isKnown) throw new HookError("invalid_workflow", "extra_data: only api_key_comfy_org is allowed");
}

/** Refuses an integer that JavaScript has printed: beyond 2^53 its last digits are no longer the caller's. */
function refuseRounded(value: unknown, at: string): void {
  if (typeof value === "bigint") {
    const printed = String(value);
    if (!Number.isSafeInteger(Number(value)) && String(Number(value)) === printed) {
      const fault = `${printed} may have been rounded by JavaScript: send it as a string`;
      throw new HookError("invalid_workflow", `${at}: ${fault}`);
    }
  } else if (Array.isArray(value)) {
    for (const [index, item] of value.entries()) refuseRounded(item, `${at}.${index}`);
  } else if (isPlainObject(value)) {
    for (const [key, item] of Object.entries(value)) refuseRounded(item, `${at}.${key.slice(0, 80)}`);
  }
}

/** Throws invalid_workflow for a graph of which an output cannot be computed. */
export function refuseInvalid(validation: Validation): void {
  const { nodeErrors } = validation;
  const nodes = Object.entries(nodeErrors);
  if (validation.ok && nodes.length === 0) return;
  const sentence = nodes[0]?.[1].errors[0]?.sentence ?? (validation.ok ? "" : validation.error.sentence);
  const unknown = validation.ok ? undefined : validation.error.extra_info.unknown_classes;
  const node_errors = Object.fromEntries([
    ...nodes.map(([id, { errors }]) => [
      id,
      errors.map(({ input, code, sentence }) => ({ field: input ?? "", reason: reasonOf(code), message: sentence })),
    ]),
    ...unknownNodes(unknown, sentence),
  ]);
  throw new HookError("invalid_workflow", sentence, { details: { node_errors } });
}

const reasonOf = (code: string): string => (code === "input.missing" ? "missing_input" : code.replace(/[.-]/g, "_"));

function unknownNodes(classes: unknown, message: string): [string, object[]][] {
  const list = (classes ?? []) as readonly { class_type: string; node_ids: readonly string[] }[];
  return list.flatMap(({ node_ids }) =>
    node_ids.map((id): [string, object[]] => [id, [{ field: "class_type", reason: "unknown_class", message }]]),
  );
}
