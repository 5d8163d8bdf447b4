import { type ChildProcess, spawn } from "node:child_process";
import { fileURLToPath } from "node:url";
import { LatentkitError } from "../../../base/errors.js";
import type { GraphicsAdapter } from "../../../native/bindings.js";
import { takeMemory } from "../../../tensor/memory-pool.js";
import type { SessionPorts } from "../session/sessions.js";
import {
  type CreateRequest,
  type Ready,
  ReceivedBytes,
  type Request,
  type RunRequest,
  type SentValues,
  sendBytes,
  type ToChild,
  type ToParent,
} from "./protocol.js";

const CHILD = fileURLToPath(new URL("./child.js", import.meta.url));
/** Characters of the child's error output that are kept. */
const MAX_ERROR_OUTPUT = 2000;
const MAX_LAST_LINE = 200;

type Message = Exclude<ToParent, { type: "bytes" }>;

/** Values of one output of a session. */
export interface Output {
  readonly name: string;
  readonly shape: readonly number[];
  readonly values: Float32Array;
}

/** How to get ONNX Runtime. */
const INSTALL =
  'run "npm install onnxruntime-node" (ONNXRUNTIME_NODE_INSTALL=skip leaves out its CUDA libraries, which the CPU does not need)';

/** A child process with ONNX Runtime in it. It keeps this process alive while `ref` asks for it, and ends with it. */
export class RuntimeProcess {
  readonly #child: ChildProcess;
  readonly #received = new ReceivedBytes(takeMemory);
  /** Rejects each wait for the child. */
  readonly #waiting = new Set<() => void>();
  /** Messages that nothing has taken yet, and what takes the next one. */
  readonly #messages: Message[] = [];
  #receive: ((message: Message) => void) | undefined;
  #hasBegun = false;
  #errorOutput = "";
  #end: string | undefined;
  #crashed = false;
  #nextBytes = 0;
  /** Subject of the message if the child ends. */
  #task = "ONNX Runtime, while it started";
  /** Resolves when the process is gone. */
  readonly ended: Promise<void>;
  /** Rejects with runtime.missing or runtime.failed if ONNX Runtime cannot be loaded. */
  readonly ready: Promise<Ready>;

  constructor() {
    // preloads and inspectors of this process must not reach the child
    const { NODE_OPTIONS, ...env } = process.env;
    // Yarn's Plug'n'Play finds packages by them
    this.#child = startChild(process.versions.pnp === undefined ? env : { ...env, NODE_OPTIONS });
    const kill = () => this.kill();
    process.once("exit", kill);
    this.#child.stderr!.setEncoding("utf8").on("data", (text: string) => {
      this.#errorOutput = (this.#errorOutput + text).slice(-MAX_ERROR_OUTPUT);
    });
    this.#child.on("message", (message: ToParent) => {
      if (message.type === "bytes") this.#received.add(message);
      else if (this.#receive === undefined) this.#messages.push(message);
      else this.#receive(message);
    });
    this.ended = new Promise((resolve) => {
      const over = (how: string) => {
        if (this.#end !== undefined) return;
        this.#end = how;
        process.off("exit", kill);
        for (const reject of [...this.#waiting]) reject();
        resolve();
      };
      this.#child.on("error", (error) => over(`could not be started: ${error.message}`));
      this.#child.on("close", (code, signal) => {
        // one that never started has ended already
        this.#crashed = this.#end === undefined && signal !== "SIGKILL";
        over(ending(code, signal));
      });
    });
    this.ready = this.#start();
    // callers that need the process await this and see the error
    this.ready.catch(() => {});
  }

  get isAlive(): boolean {
    return this.#end === undefined;
  }

  /** Whether it crashed, as with a faulty driver; the system kills with SIGKILL if memory is short. */
  get hasCrashed(): boolean {
    return this.#crashed;
  }

  /** Whether it has begun the last request: a process that ended without saying so had died before. */
  get hasBegun(): boolean {
    return this.#hasBegun;
  }

  get id(): number | undefined {
    return this.#child.pid;
  }

  /** Keeps this process alive until `unref`. */
  ref(): void {
    this.#child.ref();
    this.#child.channel?.ref();
    refOf(this.#child.stderr).ref();
  }

  unref(): void {
    this.#child.unref();
    this.#child.channel?.unref();
    refOf(this.#child.stderr).unref();
  }

  /** Kills the process. */
  kill(): void {
    this.#child.kill("SIGKILL");
  }

  /** Sends bytes for a later request and returns their number. Rejects with runtime.failed. */
  async sendBytes(bytes: Uint8Array, task: string): Promise<number> {
    this.#task = task;
    this.#hasBegun = false;
    const id = this.#nextBytes++;
    await sendBytes(id, bytes, (message) => this.#send(message));
    return id;
  }

  /**
   * Sends a request and waits until it is done. Rejects with runtime.failed if ONNX Runtime fails or the process ends;
   * `task` is the subject of the message: "UNet of a.safetensors, while it was loaded".
   */
  async request(
    request: Exclude<Request, CreateRequest | RunRequest | { type: "adapters" }>,
    task: string,
  ): Promise<void> {
    const reply = await this.#exchange(request, task);
    if (reply.type !== "done") throw this.#unexpected(reply);
  }

  /** GPUs as Vulkan lists them. Rejects as `request`. */
  async adapters(): Promise<readonly GraphicsAdapter[]> {
    const reply = await this.#exchange({ type: "adapters" }, "Listing the GPUs");
    if (reply.type !== "adapters") throw this.#unexpected(reply);
    return reply.adapters;
  }

  /** Makes a session and returns its inputs and outputs. Rejects as `request`. */
  async create(request: Omit<CreateRequest, "type">, task: string): Promise<SessionPorts> {
    const reply = await this.#exchange({ type: "create", ...request }, task);
    if (reply.type !== "created") throw this.#unexpected(reply);
    return reply.ports;
  }

  /** Runs a session and returns its outputs. Rejects as `request`. */
  async run(request: Omit<RunRequest, "type">, task: string): Promise<Output[]> {
    const reply = await this.#exchange({ type: "run", ...request }, task);
    if (reply.type !== "result") throw this.#unexpected(reply);
    return reply.outputs.map(({ name, shape, values }) => ({ name, shape, values: this.#floats(values) }));
  }

  #floats(values: SentValues): Float32Array {
    if (typeof values === "number") {
      const bytes = this.#received.get(values);
      this.#received.drop(values);
      return new Float32Array(bytes);
    }
    // in the message they may lie at any byte
    const bytes = takeMemory(values.length);
    new Uint8Array(bytes).set(values);
    return new Float32Array(bytes);
  }

  async #exchange(request: Request, task: string): Promise<Message> {
    this.#task = task;
    this.#hasBegun = false;
    const [begun] = await Promise.all([this.#next(), this.#send(request)]);
    if (begun.type !== "begun") throw this.#unexpected(begun);
    this.#hasBegun = true;
    const reply = await this.#next();
    if (reply.type === "failed") throw new LatentkitError("runtime.failed", `${task}: ${asSentence(reply.message)}`);
    return reply;
  }

  async #start(): Promise<Ready> {
    const message = await this.#next();
    if (message.type === "ready") return message;
    if (message.type !== "unavailable") throw this.#unexpected(message);
    if (message.isMissing)
      throw new LatentkitError("runtime.missing", `Running a checkpoint needs onnxruntime-node: ${INSTALL}.`);
    const text = `onnxruntime-node cannot be loaded: ${asSentence(message.message)}`;
    throw new LatentkitError("runtime.failed", text);
  }

  #unexpected({ type }: Message): LatentkitError {
    return new LatentkitError(
      "runtime.failed",
      `${this.#task}: the process of ONNX Runtime sent an unexpected "${type}".`,
    );
  }

  /** The child's next message but bytes. */
  async #next(): Promise<Message> {
    return (
      this.#messages.shift() ??
      this.#wait((resolve) => {
        this.#receive = (message) => {
          this.#receive = undefined;
          resolve(message);
        };
      })
    );
  }

  #send(message: ToChild): Promise<void> {
    // an error says that the channel is closed: the process is about to end, and says how
    return this.#wait((resolve) => {
      if (this.#child.connected) this.#child.send(message, (error) => error === null && resolve(undefined));
    });
  }

  /** Rejects when the process ends before `start` resolves. */
  #wait<T>(start: (resolve: (value: T) => void) => void): Promise<T> {
    return new Promise((resolve, reject) => {
      const lost = () => reject(this.#lost());
      if (!this.isAlive) return lost();
      this.#waiting.add(lost);
      start((value) => {
        this.#waiting.delete(lost);
        resolve(value);
      });
    });
  }

  #lost(): LatentkitError {
    const last = this.#errorOutput.trim().split("\n").at(-1)!.slice(0, MAX_LAST_LINE);
    const output = last === "" ? "" : `; its last output was ${JSON.stringify(last)}`;
    return new LatentkitError("runtime.failed", `${this.#task}: the process of ONNX Runtime ${this.#end}${output}.`);
  }
}

function startChild(env: NodeJS.ProcessEnv): ChildProcess {
  try {
    return spawn(process.execPath, [CHILD, String(process.pid)], {
      env,
      stdio: ["ignore", "ignore", "pipe", "ipc"],
      serialization: "advanced",
      windowsHide: true,
    });
  } catch (cause) {
    const message = `The process of ONNX Runtime cannot be started (${(cause as Error).message}).`;
    throw new LatentkitError("runtime.failed", message, {}, { cause });
  }
}

/** How a process ended, in words. */
function ending(code: number | null, signal: NodeJS.Signals | null): string {
  if (signal === "SIGKILL")
    return "was killed (SIGKILL), most likely because the system ran out of memory: try a smaller picture or a smaller `memory`";
  return signal === null ? `ended with exit code ${code}` : `crashed (${signal})`;
}

const asSentence = (text: string): string => (/[.!?]$/.test(text) ? text : `${text}.`);

/** The socket that a pipe is. */
const refOf = (stream: unknown) => stream as { ref(): void; unref(): void };
