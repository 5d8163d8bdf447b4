import type { ServerResponse } from "node:http";
import { HookError } from "../../hook-error.js";
import type { HookContext } from "../../http/context.js";
import { TERMINAL_EVENTS } from "../../runs/outcome.js";
import { type Message, type Prompts, PromptView } from "./prompts.js";
import type { Sockets } from "./sockets.js";

/** Time after a response before the client of its prompt learns more: clients listen only once they have it. */
const GATE_MS = 50;
const FAILURES: ReadonlySet<string> = new Set(["error", "aborted"]);

// decisions: Classic clients learn of a prompt 50 ms late
/** Tells clients how their prompts go on. */
export class Publisher {
  readonly #context: HookContext;
  readonly #prompts: Prompts;
  readonly #sockets: Sockets;
  /** Prompts whose clients are being told, with the messages so far. */
  readonly #told = new Map<string, { readonly clientId: string; readonly view: PromptView }>();

  constructor(context: HookContext, prompts: Prompts, sockets: Sockets) {
    this.#context = context;
    this.#prompts = prompts;
    this.#sockets = sockets;
  }

  /** Follows a prompt from its start to its end, from a while after its response on. Never fails. */
  async follow(id: string, clientId: string, res: ServerResponse): Promise<void> {
    if (clientId !== "") await this.#afterResponse(res);
    const view = new PromptView(id);
    this.#told.set(id, { clientId, view });
    let end: Message | undefined;
    try {
      await this.#tellQueue();
      const since = this.#context.clock.monotonic();
      for await (const { events } of this.#context.runs.follow(id, 0)) {
        for (const event of events) {
          // a client that has just learned of the start looks at the history before it listens for errors
          if (clientId !== "" && FAILURES.has(event.event)) await this.#until(since + GATE_MS);
          const messages = view.take(event, this.#context.clock.now());
          for (const message of messages) this.#tell(clientId, message);
          if (clientId !== "" && event.event === "image") await this.#sendPicture(id, clientId, view);
          if (TERMINAL_EVENTS.some((name) => name === event.event)) end = messages.at(-1);
        }
      }
    } catch (error) {
      // its run was removed
      const isGone = error instanceof HookError && error.kind === "run_not_found";
      if (!isGone)
        this.#context.log.error({ run_id: id, err: error }, "could not tell the client that its prompt ended");
    }
    this.#told.delete(id);
    this.#prompts.publish(id);
    // the service stops: the run may go on elsewhere
    if (end === undefined && this.#context.runs.closing) return;
    await this.#tellQueue();
    this.#sockets.send(clientId, { type: "executing", data: { node: null, prompt_id: id } });
  }

  /** Shows a picture of the moment, a PNG file, of a node, or of the last one that the client knows to have started. */
  preview(id: string, png: Uint8Array, node?: string): void {
    const { clientId, view } = this.#told.get(id) ?? {};
    if (clientId === undefined || view === undefined || view.node === null) return;
    this.#sockets.preview(clientId, png, pictureFacts(id, node ?? view.node));
  }

  /** Message about the queue. */
  async status(): Promise<Message> {
    const queue_remaining = await this.#prompts.remaining();
    return { type: "status", data: { status: { exec_info: { queue_remaining } } } };
  }

  /** Sends the picture that a prompt has just saved, where its node is one whose clients read pictures from their sockets. */
  async #sendPicture(id: string, clientId: string, { node, classType, saved: name }: PromptView): Promise<void> {
    if (classType !== "SaveImageWebsocket" || node === null || name === undefined) return;
    if (!this.#sockets.has(clientId)) return;
    const { runs, files: store, config, log } = this.#context;
    try {
      const file = await store.open(await runs.file(id, name), { headOnly: false });
      try {
        // a longer one would cut its reader; it can be had under /view
        if (file.size > config.limits.streams_bytes / 2) return;
        const chunks: Buffer[] = [];
        for await (const chunk of file.read() as AsyncIterable<Buffer>) chunks.push(chunk);
        await this.#sockets.picture(clientId, Buffer.concat(chunks), pictureFacts(id, node));
      } finally {
        await file.close();
      }
    } catch (error) {
      log.error({ run_id: id, err: error }, "could not send a picture to the client");
    }
  }

  async #tellQueue(): Promise<void> {
    if (this.#sockets.size === 0) return;
    try {
      this.#sockets.broadcast(await this.status());
    } catch (error) {
      this.#context.log.error({ err: error }, "could not send the queue status");
    }
  }

  #tell(clientId: string, message: Message): void {
    if (message.type === "execution_interrupted") this.#sockets.broadcast(message);
    else this.#sockets.send(clientId, message);
  }

  async #afterResponse(res: ServerResponse): Promise<void> {
    if (!res.writableFinished && !res.destroyed) await new Promise((resolve) => res.once("close", resolve));
    await this.#until(this.#context.clock.monotonic() + GATE_MS);
    // a client in this process that was held up reads its response first
    await new Promise((resolve) => setImmediate(resolve));
  }

  /** Waits until a time of the monotonic clock. */
  #until(time: number): Promise<void> {
    const { clock } = this.#context;
    const ms = time - clock.monotonic();
    return ms <= 0 ? Promise.resolve() : new Promise((resolve) => void clock.setTimer(ms, resolve));
  }
}

/** Facts about a picture of a node that a client may read with it. */
const pictureFacts = (prompt_id: string, node: string): object => ({
  node_id: node,
  display_node_id: node,
  parent_node_id: null,
  real_node_id: node,
  prompt_id,
});
