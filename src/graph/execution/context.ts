import { inputError, LatentkitError, messageOf } from "../../base/errors.js";
import type { Host } from "../../host/host.js";
import { InputFiles } from "../../io/files/input-files.js";
import type { FilesByName } from "../../io/files/input-text.js";
import type { OutputHandling } from "../../io/files/output-files.js";
import { cloneJson } from "../../io/json/lossless.js";
import { bendOf } from "../../nodes/bends.js";
import { type Folders, type HiddenType, type NodeConfig, type NodeContext, needsNetwork } from "../../nodes/define.js";
import type { ChoiceContext, InputSpec } from "../../nodes/inputs.js";
import { checkSocket } from "../../nodes/sockets.js";
import { CONVERTED, convertInput, expectedOf } from "../../nodes/values.js";
import type { DeviceChoice } from "../../tensor/device/device.js";
import type { Happening } from "../events.js";
import type { Job } from "../job.js";
import type { RunMemory } from "../memory/run-memory.js";
import type { Graph } from "../parse.js";
import type { PreparedNode } from "../prepared.js";
import type { Surroundings } from "../surroundings.js";
import { networkError } from "../validation/graph-error.js";
import type { CheckValue } from "./calls.js";
import { RunWarnings } from "./reporting.js";

// Previews change no picture, so the option is not part of a batch's hash.
/** Shortest time between two previews. */
const PREVIEW_EVERY_MS = 100;

/** Facts that the executor computes for one run. */
export interface RunScope {
  readonly graph: Graph;
  readonly memory: RunMemory;
  readonly signal: AbortSignal;
  /** Where nodes compute; if absent, as outside the run. */
  readonly device?: DeviceChoice;
}

/** Everything that the nodes of one run share. */
export class ExecutionContext {
  readonly choiceContext: ChoiceContext;
  readonly folders: Folders;
  readonly inputs: InputFiles;
  readonly warnings: RunWarnings;
  readonly clock: () => Date;
  readonly fetch: typeof fetch;
  readonly config: NodeConfig;
  /** Values that come through links are checked before a node gets them. */
  readonly isChecked: boolean;
  /** Nodes must not reach the network, including those of expansions. */
  readonly isOffline: boolean;
  readonly #extraPnginfo: unknown;
  #promptCopy: unknown;
  #previewedAt = Number.NEGATIVE_INFINITY;
  readonly #job: Job;
  readonly #emit: (happening: Happening) => void;

  constructor(
    job: Job,
    readonly surroundings: Surroundings,
    readonly scope: RunScope,
    emit: (happening: Happening) => void,
  ) {
    this.#job = job;
    this.#emit = emit;
    this.choiceContext = { host: surroundings.host, inputDir: job.inputDir, files: job.files };
    this.folders = foldersOf(job);
    this.warnings = new RunWarnings(scope.memory, emit);
    this.isChecked = job.validate !== false;
    this.isOffline = job.allowNetwork === false;
    const { inputDir: folder, files, config = {} } = job;
    this.inputs = surroundings.inputs ?? new InputFiles({ folder, files, isOffline: this.isOffline });
    this.clock = surroundings.clock ?? (() => new Date());
    this.fetch = this.isOffline ? refusedFetch : (surroundings.fetch ?? globalThis.fetch);
    this.config = this.isOffline ? withoutKeys(config) : config;
    // nodes write into it, so the run has its own
    this.#extraPnginfo = cloneJson(job.extraPnginfo);
  }

  /** The image of a node's progress, if one is due: its own, or the result of its function. */
  previewOf(image: unknown): unknown {
    if (typeof image !== "function") return image;
    return this.#isPreviewDue() ? image() : undefined;
  }

  progress(nodeId: string, value: number, max: number, preview: unknown): void {
    this.#emit(
      preview === undefined
        ? { type: "progress", nodeId, value, max }
        : { type: "progress", nodeId, value, max, preview },
    );
  }

  #isPreviewDue(): boolean {
    const now = performance.now();
    if (this.#job.previews !== true || now - this.#previewedAt < PREVIEW_EVERY_MS) return false;
    this.#previewedAt = now;
    return true;
  }

  /** Hidden inputs under the node's own names for them. */
  hiddenOf({ id, definition }: PreparedNode): Record<string, unknown> {
    const hidden: Record<string, unknown> = {};
    for (const [name, type] of Object.entries(definition.hidden)) hidden[name] = this.#hidden(type, id);
    return hidden;
  }

  #hidden(type: HiddenType, id: string): unknown {
    if (type === "UNIQUE_ID") return id;
    if (type === "EXTRA_PNGINFO") return this.#extraPnginfo;
    const { metadataPrompt = this.scope.graph.prompt } = this.surroundings;
    if (metadataPrompt === null) return undefined;
    // the package's own nodes do not write into it
    if (this.scope.memory.isContained) return metadataPrompt;
    this.#promptCopy ??= cloneJson(metadataPrompt);
    return this.#promptCopy;
  }

  /** Checks of the values a node gets through links; undefined if the run does not check them. */
  checkOf(node: PreparedNode): CheckValue | undefined {
    if (!this.isChecked) return undefined;
    return (spec, value, input) => this.#check(node, spec, value, input);
  }

  #check(node: PreparedNode, spec: InputSpec, value: unknown, input: string): unknown {
    if (spec.type === "*") return value;
    const at = { nodeId: node.id, node: node.definition.key, input };
    const isAbsent = value === undefined || value === null;
    if (isAbsent && spec.optional) return spec.options.default;
    if (CONVERTED.has(spec.type)) {
      const converted = convertInput(spec, value, at, { context: this.choiceContext });
      this.warnings.addBend(node, input, () => bendOf(spec, value, converted));
      return converted;
    }
    if (isAbsent) throw inputError("input.missing", at, expectedOf(spec), value);
    return checkSocket(spec.type, value, at);
  }
}

/** Folders of a run; a node fails if it needs one that the job does not name. */
function foldersOf({ outputDir, inputDir }: Job): Folders {
  const required = (option: string, path: string | undefined): string => {
    if (path !== undefined) return path;
    throw new LatentkitError("usage.invalid", `${option}: expected a folder, received none.`);
  };
  return {
    get output() {
      return required("outputDir", outputDir);
    },
    get input() {
      return required("inputDir", inputDir);
    },
  };
}

/** The context of one node while it runs: a view of its run's state. */
export class RunningNode implements NodeContext {
  readonly nodeId: string;
  #isOver = false;
  #reached: [value: number, max: number] = [0, 0];
  readonly #node: PreparedNode;
  readonly #execution: ExecutionContext;

  constructor(node: PreparedNode, execution: ExecutionContext) {
    this.#node = node;
    this.#execution = execution;
    this.nodeId = node.id;
  }

  get signal(): AbortSignal {
    return this.#execution.scope.signal;
  }

  get state(): Record<string, unknown> {
    return this.#execution.scope.memory.cache.stateOf(this.nodeId, this.#node.definition);
  }

  get folders(): Folders {
    return this.#execution.folders;
  }

  get host(): Host {
    const { host } = this.#execution.surroundings;
    if (host !== undefined) return host;
    const message = `Node ${this.nodeId}: expected a host that loads models, received none.`;
    throw new LatentkitError("host.missing", message, { nodeId: this.nodeId });
  }

  get readInput(): (name: string, subject?: string) => Promise<Buffer> {
    const { inputs, scope } = this.#execution;
    return (name, subject) => inputs.read(name, subject, scope.signal);
  }

  get clock(): () => Date {
    return this.#execution.clock;
  }

  get fetch(): typeof fetch {
    return this.#execution.fetch;
  }

  get config(): NodeConfig {
    return this.#execution.config;
  }

  get output(): OutputHandling | undefined {
    return this.#execution.surroundings.outputHandling;
  }

  get isBlocking(): boolean | undefined {
    return this.#execution.surroundings.isBlocking;
  }

  // functions that nodes take out of the context, made only if one does
  get progress(): (value: number, max: number, preview?: unknown) => void {
    return (value, max, preview) => {
      if (this.#isOver) return;
      this.#reached = [value, max];
      // a late picture comes with the progress reached by then, which never goes back
      const report = (image: unknown) => {
        if (!this.#isOver) this.#execution.progress(this.nodeId, ...this.#reached, image);
      };
      const image = this.#execution.previewOf(preview);
      if (!(image instanceof Promise)) return report(image);
      report(undefined);
      image.then(report, (error) => this.log(`The preview failed: ${messageOf(error)}`));
    };
  }

  get log(): (message: string) => void {
    return (message) => {
      if (!this.#isOver) this.#execution.warnings.add(this.#node, message);
    };
  }

  /** Drops further reports of the node. */
  close(): void {
    this.#isOver = true;
  }
}

/** Throws network.forbidden for the first node that reaches the network or uses a key. */
export function refuseNetwork(nodes: Iterable<PreparedNode>, files: FilesByName | undefined): void {
  for (const { displayId, definition, values } of nodes) {
    if (!needsNetwork(definition, values, files)) continue;
    const at = { nodeId: displayId, node: definition.key };
    throw new LatentkitError("network.forbidden", networkError(at).sentence, at);
  }
}

/** `fetch` of an offline run, for nodes that reach the network without declaring it. */
const refusedFetch: typeof fetch = async () => {
  throw new LatentkitError(
    "network.forbidden",
    "The network may not be reached (allowNetwork, allow_network, --offline).",
  );
};

/** Copy of the configuration without keys. */
const withoutKeys = ({ remote_image_api: api, ...config }: NodeConfig): NodeConfig =>
  api === undefined ? config : { ...config, remote_image_api: { ...api, keys: [] } };
