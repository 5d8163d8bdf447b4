import { realpathSync } from "node:fs";
import { basename, dirname, join, resolve } from "node:path";
import { withoutFormat } from "../../../../base/controls.js";
import type { AgentContext } from "../../../agent/agent.js";
import { fileUrl } from "../../run.js";
import { TERMINAL_EVENTS } from "../outcome.js";
import { toJsonLine } from "../safe-json.js";
import type { EventWriter } from "./event-writer.js";

/** Events that only the service writes. */
const RESERVED: readonly string[] = ["replay_meta", ...TERMINAL_EVENTS];
// a line break here would forge a frame of the stream
const EVENT_NAME = /^[A-Za-z][\w.-]{0,63}$/;
const FILE_NAME = /^(?!\.{1,2}$)[^/\\\p{Cc}\p{Cs}]{1,255}$/u;
/** Longest partial text of a cancelled run, in UTF-16 units. */
const LONGEST_TEXT = 1024 * 1024;

/** Warnings of a run that are told to a log, and characters of each. */
const MOST_WARNINGS = 100;
const LONGEST_WARNING = 500;

/** Listeners to an agent's output, beside the events that are stored. */
export interface OutputListeners {
  readonly onPreview?: AgentContext["preview"];
  readonly onWarning?: (message: string) => void;
}

/** The events, files and text of one agent call. */
export class AgentOutput {
  readonly #runId: string;
  readonly #writer: EventWriter;
  readonly #mostFiles: number;
  readonly #listeners: OutputListeners;
  readonly #paths = new Map<string, string>();
  #text = "";
  #warnings = 0;
  #isClosed = false;

  constructor(runId: string, writer: EventWriter, mostFiles: number, listeners: OutputListeners = {}) {
    this.#runId = runId;
    this.#writer = writer;
    this.#mostFiles = mostFiles;
    this.#listeners = listeners;
  }

  /** The deltas so far, joined; null before the first. */
  get partialText(): string | null {
    return this.#text === "" ? null : this.#text;
  }

  /** Ignores all further output. */
  close(): void {
    this.#isClosed = true;
  }

  context(signal: AbortSignal): AgentContext {
    return {
      signal,
      emit: (event, data) => this.#emit(event, data),
      addFile: (file) => this.#addFile(file),
      preview: (png, node) => {
        if (!this.#isClosed && png instanceof Uint8Array) this.#listeners.onPreview?.(png, node);
      },
    };
  }

  #emit(event: string, data: unknown): void {
    if (this.#isClosed) return;
    if (typeof event !== "string" || !EVENT_NAME.test(event)) {
      throw new TypeError("emit: an event name is 1 to 64 of A-Z a-z 0-9 _ . - and begins with a letter.");
    }
    if (RESERVED.includes(event)) throw new TypeError(`emit: the event name "${event}" is reserved for the service.`);
    const line = toJsonLine(data);
    // the agent's data may have getters, which run its code: the run may have ended meanwhile
    if (this.#isClosed) return;
    this.#writer.add(event, line);
    if (event === "delta") this.#collect(line);
    if (event === "warning") this.#warn(line);
  }

  #warn(line: string): void {
    if (this.#warnings === MOST_WARNINGS) return;
    this.#warnings++;
    const message = (JSON.parse(line) as { message?: unknown } | null)?.message;
    if (typeof message === "string") this.#listeners.onWarning?.(message.slice(0, LONGEST_WARNING));
  }

  #collect(line: string): void {
    const room = LONGEST_TEXT - this.#text.length;
    const delta = room > 0 ? (JSON.parse(line) as { delta?: unknown } | null)?.delta : undefined;
    if (typeof delta === "string") this.#text += delta.slice(0, room);
  }

  #addFile(file: { path: string; name?: string; contentType?: string }): { name: string; url: string } {
    const path = realFolder(resolve(file.path));
    const visible = withoutFormat(file.name ?? basename(path));
    if (!FILE_NAME.test(visible)) {
      throw new TypeError("addFile: a name is 1 to 255 characters without slashes and control characters.");
    }
    const name = this.#freeName(visible, path);
    if (!this.#isClosed && !this.#paths.has(name)) {
      if (this.#paths.size >= this.#mostFiles)
        throw new RangeError(`addFile: a run has at most ${this.#mostFiles} files.`);
      this.#paths.set(name, path);
      this.#writer.addFile({ name, path, contentType: file.contentType ?? null });
    }
    return { name, url: fileUrl(this.#runId, name) };
  }

  /** Numbers files of the same name from several folders: fox.png, fox-2.png, … */
  #freeName(requested: string, path: string): string {
    const dot = requested.lastIndexOf(".");
    const [stem, extension] = dot > 0 ? [requested.slice(0, dot), requested.slice(dot)] : [requested, ""];
    let name = requested;
    for (let n = 2; this.#paths.has(name) && this.#paths.get(name) !== path; n++) name = `${stem}-${n}${extension}`;
    return name;
  }
}

/** Resolves links in all but the last part of a path, so that a link that appears later is noticed. */
function realFolder(path: string): string {
  try {
    return join(realpathSync.native(dirname(path)), basename(path));
  } catch {
    // the folder does not exist yet
    return path;
  }
}
