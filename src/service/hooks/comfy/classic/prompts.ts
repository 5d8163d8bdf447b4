import { parseJson, printJsonUnicode } from "../../../../io/json/lossless.js";
import type { PromptFacts } from "../../../agent/agent.js";
import { nameAssets } from "../../../agent/asset-references.js";
import { HookError, undefinedFor } from "../../hook-error.js";
import type { HookContext } from "../../http/context.js";
import type { RunFile, RunStatus, RunSummary, StoredEvent } from "../../run.js";
import { fieldsOf, fileNameOf } from "../job-view.js";

/** Tag of the runs of prompts. */
export const TAG = "comfyui";
const MOST_ID_CHARACTERS = 256;
/** Most prompts of one response, and most bytes of their graphs; those beyond have an empty graph. */
const MOST_LISTED = 1000;
const MOST_GRAPH_BYTES = 8 * 1024 * 1024;
/** Most entries of one response of the history. */
export const MOST_HISTORY = 200;
const MOST_HISTORY_BYTES = 32 * 1024 * 1024;
/** Most deleted entries that are remembered, and most runs that a response looks at. */
const MOST_HIDDEN = 10_000;
const PAGE = 500;
/** Ended prompts whose events are remembered, folded. */
const MOST_VIEWS = 100;

/** A client's name for itself; undefined for none. Fails with invalid_request: its client would wait for messages in vain. */
export function readClientId(value: unknown, field: string): string | undefined {
  if (typeof value !== "string" || value === "") return undefined;
  if (value.length <= MOST_ID_CHARACTERS && !/\p{Cc}/u.test(value)) return value;
  const expected = `expected at most ${MOST_ID_CHARACTERS} characters, no control characters`;
  throw new HookError("invalid_request", `${field}: ${expected}`);
}

// Facts of the client are a text field of the run, and its history a fold of the events: no table of its own.
/** Prompts of ComfyUI's classic API: runs, and what their clients may know of them. */
export class Prompts {
  readonly #context: HookContext;
  /** Ids of prompts that were started here, and whose ends clients have not been told. */
  readonly #unpublished = new Set<string>();
  readonly #hidden = new Set<string>();
  readonly #views = new Map<string, PromptView>();
  /** Runs up to this number are deleted from the history. */
  #hiddenUpTo = 0;

  constructor(context: HookContext) {
    this.#context = context;
  }

  /** Shows clients that a prompt runs, whatever becomes of it, until `publish`; false where it does already. */
  withhold(id: string): boolean {
    if (this.#unpublished.has(id)) return false;
    this.#unpublished.add(id);
    return true;
  }

  /** Lets clients see the end of a prompt. */
  publish(id: string): void {
    this.#unpublished.delete(id);
  }

  /** Number of prompts that wait or run. */
  async remaining(): Promise<number> {
    const { running, pending } = await this.#open();
    return running.length + pending.length;
  }

  /** The queue as JSON. */
  async queueText(): Promise<string> {
    const { running, pending } = await this.#open();
    const budget = { left: MOST_GRAPH_BYTES };
    const items = async (runs: readonly string[]) => {
      const texts: string[] = [];
      for (const id of runs) {
        const text = await this.#itemText(id, budget);
        if (text !== undefined) texts.push(text);
      }
      return `[${texts.join(",")}]`;
    };
    return `{"queue_running":${await items(running)},"queue_pending":${await items(pending)}}`;
  }

  /** Entry of the history as JSON; undefined for a prompt that has not ended, is unknown or deleted. */
  async historyText(id: string): Promise<string | undefined> {
    const run = await this.#find(id);
    if (run === undefined || !this.#isPast(run)) return undefined;
    const item = await this.#itemText(id, { left: MOST_HISTORY_BYTES });
    if (item === undefined) return undefined;
    const view = await this.#read(run);
    const nodes = [...view.outputs.keys()];
    const metaOf = (node: string) => ({ node_id: node, display_node: node, parent_node: null, real_node_id: node });
    const outputs = JSON.stringify(Object.fromEntries(view.outputs));
    const status = JSON.stringify(statusJson(run, view));
    const meta = JSON.stringify(Object.fromEntries(nodes.map((node) => [node, metaOf(node)])));
    return `{"prompt":${item},"outputs":${outputs},"status":${status},"meta":${meta}}`;
  }

  /** The newest entries of the history, or those from `offset` on counted from the oldest, as JSON. */
  async historiesText({ most, offset }: { most: number; offset: number | undefined }): Promise<string> {
    const ids: string[] = [];
    for await (const run of this.#past()) {
      if (ids.push(run.id) >= (offset === undefined ? most : MOST_HIDDEN)) break;
    }
    ids.reverse();
    const entries: string[] = [];
    let bytes = 0;
    for (const id of offset === undefined ? ids : ids.slice(offset, offset + most)) {
      const text = await this.historyText(id);
      if (text === undefined) continue;
      bytes += text.length;
      if (bytes > MOST_HISTORY_BYTES) break;
      entries.push(`${JSON.stringify(id)}:${text}`);
    }
    return `{${entries.join(",")}}`;
  }

  /** Deletes entries of the history: those of `ids`, or all. Their runs stay. */
  async hide(ids: readonly string[] | "all"): Promise<void> {
    if (ids === "all") {
      const { runs } = await this.#context.runs.list({ limit: 1 });
      this.#hiddenUpTo = runs[0]?.seq ?? this.#hiddenUpTo;
      this.#hidden.clear();
      return;
    }
    for (const id of ids) {
      this.#hidden.add(id);
      if (this.#hidden.size > MOST_HIDDEN) this.#hidden.delete(this.#hidden.values().next().value!);
    }
  }

  /** Cancels prompts that wait, or also those that run: of `ids`, or all. Leaves unknown ones. */
  async cancel(ids: readonly string[] | "all", from: readonly ("running" | "queued")[]): Promise<void> {
    for (const id of ids === "all" ? await this.#idsIn(from) : ids) {
      const run = await this.#find(id);
      if (run !== undefined && from.some((state) => state === run.state)) await this.#context.runs.cancel(id);
    }
  }

  /** File of a prompt by the path that clients know; undefined where there is none. */
  async file(id: string, path: string): Promise<RunFile | undefined> {
    const run = await this.#find(id);
    const name = run && (await this.#read(run)).files.get(path);
    return name === undefined ? undefined : this.#context.runs.file(id, name);
  }

  /** All events of a run. */
  async #read({ id, startedAt, createdAt, finishedAt }: RunStatus): Promise<PromptView> {
    const cached = this.#views.get(id);
    if (cached !== undefined) return cached;
    const view = new PromptView(id);
    for (;;) {
      const { events, end } = await this.#context.runs.read(id, view.cursor);
      const at = finishedAt ?? startedAt ?? createdAt;
      for (const event of events) view.take(event, event.event === "status" ? (startedAt ?? at) : at);
      if (!end && events.length > 0) continue;
      if (end) this.#views.set(id, view);
      if (this.#views.size > MOST_VIEWS) this.#views.delete(this.#views.keys().next().value!);
      return view;
    }
  }

  /** The run of a prompt; undefined for any other id. */
  async #find(id: string): Promise<RunStatus | undefined> {
    const run = await this.#context.runs.status(id).catch(undefinedFor("run_not_found"));
    return run && isPrompt(run) ? run : undefined;
  }

  #isPast({ id, seq, finishedAt }: RunSummary): boolean {
    const isHidden = this.#hidden.has(id) || seq <= this.#hiddenUpTo;
    return finishedAt !== null && !isHidden && !this.#unpublished.has(id);
  }

  /** Prompts of the history, newest first. */
  async *#past(): AsyncGenerator<RunSummary, void> {
    let cursor: string | undefined;
    do {
      const page = await this.#context.runs.list({ cursor, limit: PAGE, tag: TAG });
      for (const run of page.runs) if (isPrompt(run) && this.#isPast(run)) yield run;
      cursor = page.nextCursor ?? undefined;
    } while (cursor !== undefined);
  }

  /** Ids of the prompts that clients are to see as running and waiting, oldest first. */
  async #open(): Promise<{ running: string[]; pending: string[] }> {
    const pending = await this.#idsIn(["queued"]);
    const waiting = new Set(pending);
    const running = new Set(await this.#idsIn(["running"]));
    for (const id of this.#unpublished) if (!waiting.has(id)) running.add(id);
    return { running: [...running], pending: pending.filter((id) => !running.has(id)) };
  }

  async #idsIn(states: readonly ("running" | "queued")[]): Promise<string[]> {
    const found: RunSummary[] = [];
    for (const state of states) {
      found.push(...(await this.#context.runs.list({ limit: MOST_LISTED, tag: TAG, state })).runs.filter(isPrompt));
    }
    return found.reverse().map(({ id }) => id);
  }

  /** A prompt as queue and history list it, as JSON; undefined where it is gone. */
  async #itemText(id: string, budget: { left: number }): Promise<string | undefined> {
    const run = await this.#context.runs.get(id).catch(undefinedFor("run_not_found"));
    if (run === undefined || run.promptFacts === null) return undefined;
    const facts = parseJson(run.promptFacts) as PromptFacts;
    budget.left -= (run.graph?.text.length ?? 0) + run.promptFacts.length;
    const isShown = budget.left >= 0;
    const graph = isShown ? await nameAssets(run.graph?.text ?? "{}") : "{}";
    const texts = isShown ? printJsonUnicode(facts.extraPnginfo) : "{}";
    const client = facts.clientId === "" ? "" : `,"client_id":${JSON.stringify(facts.clientId)}`;
    const number = numberOf(run, facts.isFront);
    return `[${number},"${id}",${graph},{"extra_pnginfo":${texts}${client}},${JSON.stringify(facts.outputs)}]`;
  }
}

const isPrompt = ({ origin, tags }: RunSummary): boolean => origin === "comfy" && tags.includes(TAG);

/** Position of a prompt as clients have it: below 0 for one that goes in front. */
export const numberOf = ({ seq }: RunSummary, isFront: boolean): number => (isFront ? -seq : seq);

/** Most nodes whose outputs a prompt shows. */
const MOST_NODES = 10_000;

/** A message of ComfyUI's WebSocket. */
export interface Message {
  readonly type: string;
  readonly data: Readonly<Record<string, unknown>>;
}

type Fields = Readonly<Record<string, unknown>>;

/** The events of a prompt's run, folded into ComfyUI's messages and history. */
export class PromptView {
  readonly #id: string;
  /** Id of the last event. */
  cursor = 0;
  /** UI results by node. */
  readonly outputs = new Map<string, unknown>();
  /** Names among the run's files, by the path that clients know. */
  readonly files = new Map<string, string>();
  /** Messages that the history keeps. */
  readonly milestones: Message[] = [];
  readonly #executed: string[] = [];
  #failure: Fields = {};
  /** The node that started last. */
  node: string | null = null;
  /** Class of that node. */
  classType: unknown = null;
  /** Name of the file that it has saved last; undefined before the first. */
  saved: string | undefined;
  #lacksCached = false;

  constructor(id: string) {
    this.#id = id;
  }

  /** Takes the next event, of the time `at`; returns the messages that it comes to. */
  take({ id, event, data }: StoredEvent, at: number): Message[] {
    this.cursor = id;
    const fields = fieldsOf(data);
    const { node, class_type: classType } = fields;
    if (event === "status") {
      this.#lacksCached = true;
      return [this.#milestone("execution_start", {}, at)];
    }
    // warnings of the graph come before the nodes that are cached
    if (event === "warning") return [];
    const before = this.#lacksCached ? [this.#cached(event === "cached" ? fields.nodes : [], at)] : [];
    this.#lacksCached = false;
    const end = this.#end(event, fields, at);
    if (end !== undefined) return [...before, end];
    if (event === "node_start") {
      this.node = String(node);
      this.classType = classType;
      this.saved = undefined;
      before.push(this.#message("executing", { node, display_node: node }));
    } else if (event === "progress") {
      before.push(this.#message("progress", { value: fields.value, max: fields.max, node }));
    } else if (event === "node_done") {
      this.#executed.push(String(node));
    } else if (event === "node_output" && this.outputs.size < MOST_NODES) {
      this.outputs.set(String(node), fields.output);
      before.push(this.#message("executed", { node, display_node: node, output: fields.output }));
    } else if (event === "node_error") {
      this.#failure = { node_id: node, node_type: classType, message: fields.message, code: fields.code };
    } else if (event === "image" || event === "file") {
      const name = fileNameOf(fields.url);
      if (node === this.node) this.saved = name;
      if (name !== undefined) this.files.set(`${String(fields.subfolder)}/${String(fields.filename)}`, name);
    }
    return before;
  }

  #end(event: string, { error, code }: Fields, at: number): Message | undefined {
    if (event === "done") return this.#milestone("execution_success", {}, at);
    const { node_id = this.node, node_type = this.classType, message = error, code: type = code } = this.#failure;
    const where = { node_id, node_type, executed: this.#executed };
    if (event === "aborted") return this.#milestone("execution_interrupted", where, at);
    if (event !== "error") return undefined;
    const exception = { exception_message: message, exception_type: type, traceback: [] };
    return this.#milestone("execution_error", { ...where, ...exception, current_inputs: {}, current_outputs: [] }, at);
  }

  #cached = (nodes: unknown, at: number): Message =>
    this.#milestone("execution_cached", { nodes: Array.isArray(nodes) ? nodes : [] }, at);

  #milestone(type: string, data: Fields, at: number): Message {
    const message = this.#message(type, { ...data, timestamp: at });
    // a run that a lost worker began starts again
    if (type === "execution_start") this.milestones.length = 0;
    this.milestones.push(message);
    return message;
  }

  #message = (type: string, data: Fields): Message => ({ type, data: { ...data, prompt_id: this.#id } });
}

/** Status of an ended run as the history has it. @internal */
export const statusJson = ({ state }: Pick<RunStatus, "state">, { milestones }: PromptView): object => ({
  status_str: state === "succeeded" ? "success" : "error",
  completed: state === "succeeded",
  messages: milestones.map(({ type, data }) => [type, data]),
});
