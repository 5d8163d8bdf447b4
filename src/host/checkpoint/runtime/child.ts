// A program that runs sessions of ONNX Runtime for its parent, which kills it to stop a run. It ends with its parent.
import { loadNative } from "../../../native/load.js";
import { OnnxSession, type PassedValues, type SessionInput, type SessionOutput } from "./onnx-session.js";
import {
  bytesOf,
  PART_BYTES,
  ReceivedBytes,
  type Reply,
  type Request,
  type RunRequest,
  type SentModel,
  type SentOutput,
  type StageRequest,
  sendBytes,
  type ToChild,
  type ToParent,
} from "./protocol.js";

const MAX_MESSAGE = 400;

const end = () => process.kill(process.pid, "SIGKILL");
process.once("disconnect", end);
// a terminal or a service manager signals the whole group; the parent decides about the runs
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.on(signal, () => {});
const native = loadNative();
native.dieWithParent();
// the parent may have ended before that call
if (process.ppid !== Number(process.argv[2])) end();

const send = (message: ToParent): Promise<void> =>
  new Promise((resolve, reject) =>
    process.send!(message, undefined, undefined, (error) => (error === null ? resolve() : reject(error))),
  );

/** Sessions of ONNX Runtime, and the requests of the parent. */
class Server {
  readonly received = new ReceivedBytes((bytes) => new ArrayBuffer(bytes));
  readonly #sessions = new Map<number, OnnxSession>();
  readonly #ort: typeof import("onnxruntime-node");

  constructor(ort: typeof import("onnxruntime-node")) {
    this.#ort = ort;
  }

  async reply(request: Request): Promise<Reply> {
    try {
      switch (request.type) {
        case "adapters":
          return { type: "adapters", adapters: native.graphicsAdapters() };
        case "create": {
          const session = await OnnxSession.create(this.#ort, this.#take(request.model), request.options);
          this.#sessions.set(request.session, session);
          native.trimHeap();
          return { type: "created", ports: session.ports };
        }
        case "release":
          await this.#sessions.get(request.session)?.release();
          this.#sessions.delete(request.session);
          native.trimHeap();
          break;
        case "forget":
          for (const id of request.values) this.received.drop(id);
          break;
        case "run":
          return await this.#run(request);
      }
      return { type: "done" };
    } catch (error) {
      return { type: "failed", message: sentence(error) };
    }
  }

  #take(model: SentModel): Uint8Array | string {
    if (typeof model !== "number") return model.path;
    const bytes = new Uint8Array(this.received.get(model));
    this.received.drop(model);
    return bytes;
  }

  async #run({ session: number, stages, feeds, outputs: names }: RunRequest): Promise<Reply> {
    const passed: PassedValues = {};
    try {
      for (const [index, stage] of stages.entries()) {
        const values = await this.#session(stage.session).stage(this.#inputs(stage.feeds));
        for (const [name, value] of Object.entries(values)) passed[`${name}.${index}`] = value;
      }
      return await this.#reply(await this.#session(number).run(this.#inputs(feeds), names, passed));
    } finally {
      // values on a GPU are not garbage-collected
      for (const value of Object.values(passed)) value.dispose();
    }
  }

  #session(number: number): OnnxSession {
    const session = this.#sessions.get(number);
    if (session === undefined) throw new Error(`session ${number} does not exist`);
    return session;
  }

  #inputs(feeds: StageRequest["feeds"]): SessionInput[] {
    return Object.entries(feeds).map(([name, feed]) => {
      const { shape } = feed;
      if ("int64" in feed) return { name, shape, values: feed.int64 };
      const { values } = feed;
      // a copy of its own: in the message they may lie at any byte
      if (typeof values !== "number") return { name, shape, values: new Float32Array(new Uint8Array(values).buffer) };
      const floats = new Float32Array(this.received.get(values));
      if (!feed.keep) this.received.drop(values);
      return { name, shape, values: floats };
    });
  }

  async #reply(outputs: readonly SessionOutput[]): Promise<Reply> {
    const sent: SentOutput[] = [];
    for (const [index, { name, shape, values }] of outputs.entries()) {
      const bytes = bytesOf(values);
      const isSmall = bytes.length <= PART_BYTES;
      if (!isSmall) await sendBytes(index, bytes, send);
      sent.push({ name, shape, values: isSmall ? bytes : index });
    }
    return { type: "result", outputs: sent };
  }
}

const ort = await load();
const server = new Server(ort);
process.on("message", async (message: ToChild) => {
  if (message.type === "bytes") return server.received.add(message);
  await send({ type: "begun" });
  await send(await server.reply(message));
});

/** Loads ONNX Runtime and tells the parent. */
async function load(): Promise<typeof import("onnxruntime-node")> {
  try {
    const { default: ort } = await import("onnxruntime-node");
    ort.env.logLevel = "error";
    const backends = ort.listSupportedBackends().map(({ name }) => name);
    await send({ type: "ready", version: String(ort.env.versions.node), backends });
    return ort;
  } catch (error) {
    // the second is for Yarn, whose Plug'n'Play finds packages itself
    const missing = process.versions.pnp === undefined ? "ERR_MODULE_NOT_FOUND" : "MODULE_NOT_FOUND";
    const isMissing = (error as NodeJS.ErrnoException).code === missing;
    await send({ type: "unavailable", isMissing, message: sentence(error) });
    return end() as never;
  }
}

/** First line of an error's message, which a C++ exception may make very long. */
function sentence(error: unknown): string {
  const [line = ""] = (error instanceof Error ? error.message : String(error)).split("\n");
  return line.length > MAX_MESSAGE ? `${line.slice(0, MAX_MESSAGE)}...` : line;
}
