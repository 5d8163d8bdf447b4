import { basename } from "node:path";
import type { RunStatus, StoredEvent } from "../../run.js";

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
      const name = nameOf(fields.url);
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

/** Status of an ended run as the history has it. */
export const statusJson = ({ state }: Pick<RunStatus, "state">, { milestones }: PromptView): object => ({
  status_str: state === "succeeded" ? "success" : "error",
  completed: state === "succeeded",
  messages: milestones.map(({ type, data }) => [type, data]),
});

function fieldsOf(data: string): Fields {
  const parsed: unknown = JSON.parse(data);
  return typeof parsed === "object" && parsed !== null ? (parsed as Fields) : {};
}

function nameOf(url: unknown): string | undefined {
  try {
    return typeof url === "string" ? decodeURIComponent(basename(url)) : undefined;
  } catch {
    return undefined;
  }
}
