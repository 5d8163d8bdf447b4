import assert from "node:assert/strict";
import type { RunEvent } from "#src/graph/events.js";
import { executeGraph } from "#src/graph/execute.js";
import { createCache } from "#src/graph/memory/cache.js";
import { findDefinitions, parseGraph } from "#src/graph/parse.js";
import { checkGraph, type Validation, validateGraph } from "#src/graph/validate.js";
import { plain } from "#src/nodes/values.js";
import {
  type ExecuteCase,
  type ExecuteRun,
  executorGolden,
  REAL_NODES,
  StubWorld,
  type ValidateCase,
} from "../../helpers/graph/executor-stubs.js";

const golden = executorGolden();
const definitions = { ...golden.definitions, ...REAL_NODES };

/**
 * Validations that are decided otherwise than in the reference: the types of all errors, by input, or "valid".
 */
const DECISIONS: Readonly<Record<string, "valid" | readonly (readonly [type: string, input: string])[]>> = {
  // null for a required input is missing
  "validate/null_required": [["required_input_missing", "image"]],
  "validate/int/8": [["required_input_missing", "i"]],
  "validate/float/8": [["required_input_missing", "f"]],
  "validate/string/1": [["required_input_missing", "s"]],
  "validate/boolean/4": [["required_input_missing", "b"]],
  "validate/combo/2": [["required_input_missing", "c"]],
  // a value for an input that takes links
  "validate/const_for_link_type": [["invalid_input_type", "image"]],
  // negative and boolean slots
  "validate/link_slot_negative": [["bad_linked_input", "image"]],
  "validate/link_slot_negative_wrongtype": [["bad_linked_input", "image"]],
  "validate/link_slot_bool": [["bad_linked_input", "image"]],
  // "*" is every type, both ways
  "validate/star_input_linked": "valid",
  "validate/star_output": "valid",
  // "1_0" is not a number, NaN is refused if there are bounds
  "validate/int/2": [["invalid_input_type", "i"]],
  "validate/float/13": [["invalid_input_type", "f"]],
  "validate/float/4": [["invalid_input_type", "f"]],
  "validate/float/5": [["invalid_input_type", "f"]],
  // texts for BOOLEAN other than true and false; objects
  "validate/boolean/1": [["invalid_input_type", "b"]],
  "validate/boolean/5": [["invalid_input_type", "b"]],
  "validate/boolean/6": [["invalid_input_type", "b"]],
  "validate/boolean/7": [["invalid_input_type", "b"]],
  // combos of the newer notation are checked
  "validate/combo_v3_style_not_checked": [["value_not_in_list", "v3"]],
};

/** Values that the decisions convert to something else than the reference. */
const CONVERTED: Readonly<Record<string, Record<string, unknown>>> = { "validate/boolean/0": { b: false } };

/** Messages of Python exceptions: there is an error of that type, in our words. */
const PYTHON_WORDS = new Set([
  "invalid_input_type",
  "exception_during_validation",
  "exception_during_inner_validation",
]);

describe("golden executor", () => {
  it("has all its cases, and no decision about a missing case", () => {
    assert.deepEqual([golden.validate.length, golden.execute.length], [170, 94]);
    const ids = golden.validate.map(({ id }) => id);
    for (const id of [...Object.keys(DECISIONS), ...Object.keys(CONVERTED)]) assert.ok(ids.includes(id), id);
  });
  describe("validation", () => {
    for (const entry of golden.validate) it(entry.id, () => checkValidation(entry));
  });
  describe("execution", () => {
    for (const entry of golden.execute) it(entry.id, () => checkExecution(entry));
  });
});

function checkValidation(entry: ValidateCase): void {
  const registry = new StubWorld().registry(definitions);
  const prompt = nanInNumbers(entry);
  const options = { registry, partialExecutionTargets: entry.partial_execution_list };
  const before = JSON.stringify(prompt, printable);
  const verdict = validateGraph(prompt, options);
  assert.equal(JSON.stringify(prompt, printable), before, "the caller's graph is left alone");
  const decision = DECISIONS[entry.id];
  if (decision !== undefined) {
    assert.equal(verdict.ok, decision === "valid");
    assert.deepEqual(typesOf(verdict), decision === "valid" ? [] : decision);
  } else if (entry.id.startsWith("validate/cycle_") && !entry.valid) {
    assert.equal(verdict.ok, false);
    assert.deepEqual(
      typesOf(verdict).map(([type]) => type),
      ["invalid_prompt"],
    );
    const [error] = Object.values(verdict.nodeErrors)[0]!.errors;
    assert.equal(error!.details, entry.id.endsWith("two") ? "cycle: 1 → 2 → 1" : "cycle: 1 → 1");
  } else {
    assert.equal(verdict.ok, entry.valid);
    if (verdict.ok) assert.deepEqual([...verdict.outputs].sort(), entry.good_outputs);
    else compareError(verdict, entry);
    compareNodeErrors(verdict, entry);
    if (Object.keys(verdict.nodeErrors).length === 0 && verdict.ok) compareValues(entry, prompt);
  }
}

function compareError(verdict: Extract<Validation, { ok: false }>, entry: ValidateCase): void {
  const expected = entry.error!;
  assert.deepEqual([verdict.error.type, verdict.error.message], [expected.type, expected.message]);
  const lines = verdict.error.details.split("\n").sort();
  if (typesOf(verdict).some(([type]) => PYTHON_WORDS.has(type))) {
    assert.equal(lines.length, (expected.details_lines_sorted ?? [""]).length);
  } else {
    assert.deepEqual(lines, expected.details_lines_sorted ?? [""]);
  }
}

function compareNodeErrors(verdict: Validation, entry: ValidateCase): void {
  assert.deepEqual(Object.keys(verdict.nodeErrors), Object.keys(entry.node_errors));
  for (const [id, expected] of Object.entries(entry.node_errors)) {
    const ours = verdict.nodeErrors[id]!;
    assert.equal(ours.class_type, expected.class_type);
    assert.deepEqual(normal(ours.errors), normal(plain(expected.errors) as typeof expected.errors));
    // the reference also lists outputs that fail for other reasons, in the order of a Python set
    const isAccident = entry.id === "validate/two_outputs_bad";
    assert.deepEqual([...ours.dependent_outputs].sort(), isAccident ? [id] : expected.dependent_outputs);
    for (const { sentence, input, code } of ours.errors) {
      assert.ok(/[.?]$/.test(sentence) && sentence.includes(`Node ${id}`), sentence);
      assert.ok(code !== undefined && (input === undefined || sentence.includes(input)));
    }
  }
}

interface HostError {
  type: string;
  message: string;
  details: string;
  extra_info: Record<string, unknown>;
}

/** Errors without their order, our additions and the wording of exceptions. */
function normal(errors: readonly HostError[]): string[] {
  return errors
    .map(({ type, message, details, extra_info }) => {
      const { exception_message, exception_type, input_config, ...facts } = extra_info;
      const shown = PYTHON_WORDS.has(type) ? String(facts.input_name) : details;
      return JSON.stringify(
        [type, message, shown, sortedConfig(input_config), Object.entries(facts).sort()],
        printable,
      );
    })
    .sort();
}

/** Tooltips belong to the real nodes, not to what is tested. */
function sortedConfig(config: unknown): unknown {
  if (!Array.isArray(config)) return config;
  const { tooltip, control_after_generate, ...options } = config[1] as Record<string, unknown>;
  return [config[0], Object.entries(options).sort()];
}

const printable = (_: string, value: unknown): unknown =>
  typeof value === "bigint" || (typeof value === "number" && !Number.isFinite(value)) ? String(value) : value;

function typesOf({ nodeErrors }: Validation): [string, string][] {
  return Object.values(nodeErrors).flatMap(({ errors }) =>
    errors.map(({ type, input }): [string, string] => [type, String(input)]),
  );
}

/** Values a node gets are those the reference writes into its prompt. */
function compareValues(entry: ValidateCase, prompt: object): void {
  const registry = new StubWorld().registry(definitions);
  const graph = parseGraph(prompt);
  const partialExecutionTargets = entry.partial_execution_list;
  const { prepared } = checkGraph(graph, findDefinitions(graph, registry), { partialExecutionTargets }, {});
  for (const [id, node] of Object.entries(entry.prompt_after ?? entry.prompt)) {
    for (const [input, value] of Object.entries(prepared.get(id)?.values ?? {})) {
      const expected = plain(CONVERTED[entry.id]?.[input] ?? node.inputs[input]);
      const { type } = prepared.get(id)!.definition.inputs[input]!;
      // Python leaves 1 and true as they are where the other is meant; they are equal there
      const isPythonEqual = typeof expected !== "string" && typeof value !== "string" && type !== "STRING";
      if (isPythonEqual) assert.equal(Number(value), Number(expected), `${id}.${input}`);
      else assert.equal(value, expected, `${id}.${input}`);
      assert.equal(typeof value, TYPES[type] ?? typeof value, `${id}.${input}`);
    }
  }
}

const TYPES: Readonly<Record<string, string>> = {
  INT: "number",
  FLOAT: "number",
  STRING: "string",
  BOOLEAN: "boolean",
};

/** The file writes non-finite numbers as strings. */
function nanInNumbers({ id, prompt }: ValidateCase): object {
  const text: Record<string, unknown> = {
    "validate/int/15": Number.NaN,
    "validate/int/16": Infinity,
    "validate/float/5": Number.NaN,
  };
  if (text[id] === undefined) return prompt;
  const input = id.startsWith("validate/int") ? "i" : "f";
  return { "1": { ...prompt["1"], inputs: { ...prompt["1"]!.inputs, [input]: text[id] } } };
}

async function checkExecution(entry: ExecuteCase): Promise<void> {
  const world = new StubWorld();
  const registry = world.registry(definitions);
  const policy = entry.cache.type === "dependency_aware" ? "none" : entry.cache.type;
  const cache = createCache({ policy, size: entry.cache.size ?? undefined });
  for (const run of entry.runs) {
    world.counter = run.external_counter ?? 0;
    world.calls = [];
    const events: RunEvent[] = [];
    const job = { validate: false, targets: run.execute_outputs, extraPnginfo: { w: 1 } };
    for await (const event of executeGraph(run.prompt, job, { registry, cache })) events.push(event);
    const decided = DECIDED_RUNS[entry.id];
    if (decided === undefined) compareRun(run, events, world);
    else decided(run, events, world);
  }
}

/** Runs that are decided otherwise: no index error for empty lists, cycles found before anything runs. */
const DECIDED_RUNS: Readonly<Record<string, (run: ExecuteRun, events: RunEvent[], world: StubWorld) => void>> = {
  "execute/list/empty": (run, events, world) => emptyList("2", "4", run, events, world),
  "execute/list/empty_and_longer": (run, events, world) => emptyList("3", "4", run, events, world),
  "execute/cycle/at_runtime": (_, events, world) => {
    assert.deepEqual(world.calls, []);
    const error = events.find((event) => event.type === "node-error");
    assert.match(error!.error.message, /cycle: 1 → 2 → 1/);
    assert.equal(statusOf(events), "failed");
  },
};

function emptyList(node: string, output: string, run: ExecuteRun, events: RunEvent[], world: StubWorld): void {
  assert.deepEqual(runOrder(world), run.run_order);
  const warned = events.filter((event) => event.type === "warning").map(({ nodeId }) => nodeId);
  assert.deepEqual(warned, [node, output]);
  const done = events.find((event) => event.type === "node-done" && event.nodeId === node);
  assert.deepEqual(done?.type === "node-done" && done.outputs, [[]]);
  assert.equal(statusOf(events), "success");
}

const runOrder = ({ calls }: StubWorld) => calls.filter(({ call }) => call === "run").map(({ node }) => node);

function statusOf(events: readonly RunEvent[]): string {
  const last = events.at(-1)!;
  assert.equal(last.type, "run-done");
  return last.type === "run-done" ? last.status : "";
}

function compareRun(run: ExecuteRun, events: RunEvent[], world: StubWorld): void {
  assert.deepEqual(runOrder(world), run.run_order);
  assert.deepEqual(hostEvents(events), goldenEvents(run));
  assert.deepEqual(
    world.calls.map(({ call, args }) => [call, args]),
    (run.calls ?? []).map(({ call, args }) => [call, plain(args)]),
  );
  for (const [i, { call, node }] of (run.calls ?? []).entries()) {
    if (call === "run") assert.equal(world.calls[i]!.node, node);
  }
  assert.equal(statusOf(events), run.success ? "success" : "failed");
  const last = events.at(-1)!;
  assert.deepEqual(last.type === "run-done" && last.ui, plain(run.ui_outputs));
  const cached = events.find((event) => event.type === "cached");
  assert.deepEqual([...cached!.nodeIds].sort(), [...run.cached_nodes].sort());
}

/** Our events as the host's messages. */
function hostEvents(events: readonly RunEvent[]): unknown[] {
  const started = new Set<string>();
  return events.flatMap((event): unknown[] => {
    switch (event.type) {
      case "run-start":
        return [["execution_start"]];
      case "cached":
        return [["execution_cached", [...event.nodeIds].sort()]];
      case "node-start":
        started.add(event.nodeId);
        return [["executing", event.nodeId, event.displayId]];
      case "node-done":
        // the host tells of results only if there is a UI, or if the node did not have to run
        if (event.ui === undefined && started.has(event.nodeId)) return [];
        return [["executed", event.nodeId, event.displayId, event.ui ?? null]];
      case "node-error":
        return [["execution_error", event.nodeId, event.inputs]];
      case "blocked":
        return event.message === undefined ? [] : [["blocked", event.nodeId, event.message]];
      case "run-done":
        return event.status === "success" ? [["execution_success"]] : [];
      default:
        return [[event.type]];
    }
  });
}

function goldenEvents(run: ExecuteRun): unknown[] {
  return run.events.map(([type, raw]) => {
    const data = plain(raw) as Record<string, unknown>;
    if (type === "execution_cached") return [type, [...(data.nodes as string[])].sort()];
    if (type === "executing") return [type, data.node, data.display_node];
    if (type === "executed") return [type, data.node, data.display_node, data.output];
    if (type !== "execution_error") return [type];
    if (data.exception_type !== "ExecutionBlocked") return [type, data.node_id, data.current_inputs];
    return ["blocked", data.node_id, String(data.exception_message).replace("Execution Blocked: ", "")];
  });
}
