import { inputError, LatentkitError } from "../../base/errors.js";
import { InputFiles } from "../../io/files/input-files.js";
import { cloneJson } from "../../io/json/lossless.js";
import { bendOf } from "../../nodes/bends.js";
import type { Folders, HiddenType, NodeConfig } from "../../nodes/define.js";
import type { ChoiceContext, InputSpec } from "../../nodes/inputs.js";
import { checkSocket } from "../../nodes/sockets.js";
import { CONVERTED, convertInput, expectedOf } from "../../nodes/values.js";
import type { DeviceChoice } from "../../tensor/device/choice.js";
import type { Happening } from "../events.js";
import type { GraphRun } from "../job.js";
import type { RunMemory } from "../memory/run-memory.js";
import type { Graph } from "../parse.js";
import type { PreparedNode } from "../prepared.js";
import type { RunSurroundings } from "../surroundings.js";
import type { CheckValue } from "./gather.js";
import { refusedFetch, withoutKeys } from "./offline.js";
import { RunWarnings } from "./run-warnings.js";

// decision 207
/** Time from one preview to the next at least. */
const PREVIEW_EVERY_MS = 100;

/** Facts that the executor works out for one run. */
export interface RunScope {
  readonly graph: Graph;
  readonly memory: RunMemory;
  readonly signal: AbortSignal;
  /** Where nodes compute; as around the run where absent. */
  readonly device?: DeviceChoice;
}

/** Everything that the nodes of one run share. */
export class RunSetting {
  readonly choiceContext: ChoiceContext;
  readonly folders: Folders;
  readonly inputs: InputFiles;
  readonly warnings: RunWarnings;
  readonly clock: () => Date;
  readonly fetch: typeof fetch;
  readonly config: NodeConfig;
  /** Values that come through links are checked before a node gets them. */
  readonly isChecked: boolean;
  /** No node may reach the network, those of expansions included. */
  readonly isOffline: boolean;
  private readonly extraPnginfo: unknown;
  private promptCopy: unknown;
  private previewedAt = Number.NEGATIVE_INFINITY;

  constructor(
    private readonly job: GraphRun,
    readonly surroundings: RunSurroundings,
    readonly scope: RunScope,
    private readonly emit: (happening: Happening) => void,
  ) {
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
    this.extraPnginfo = cloneJson(job.extraPnginfo);
  }

  /** The image of a node's progress, where it is due: its own, or what its function returns. */
  previewOf(image: unknown): unknown {
    if (typeof image !== "function") return image;
    return this.isPreviewDue() ? image() : undefined;
  }

  progress(nodeId: string, value: number, max: number, preview: unknown): void {
    this.emit(
      preview === undefined
        ? { type: "progress", nodeId, value, max }
        : { type: "progress", nodeId, value, max, preview },
    );
  }

  private isPreviewDue(): boolean {
    const now = performance.now();
    if (this.job.previews !== true || now - this.previewedAt < PREVIEW_EVERY_MS) return false;
    this.previewedAt = now;
    return true;
  }

  /** Hidden inputs under the node's own names for them. */
  hiddenOf({ id, definition }: PreparedNode): Record<string, unknown> {
    const hidden: Record<string, unknown> = {};
    for (const [name, type] of Object.entries(definition.hidden)) hidden[name] = this.hidden(type, id);
    return hidden;
  }

  private hidden(type: HiddenType, id: string): unknown {
    if (type === "UNIQUE_ID") return id;
    if (type === "EXTRA_PNGINFO") return this.extraPnginfo;
    const { metadataPrompt = this.scope.graph.prompt } = this.job;
    if (metadataPrompt === null) return undefined;
    // the package's own nodes write into nothing
    if (this.scope.memory.isContained) return metadataPrompt;
    this.promptCopy ??= cloneJson(metadataPrompt);
    return this.promptCopy;
  }

  /** Checks of the values a node gets through links; undefined where the run takes them as they come. */
  checkOf(node: PreparedNode): CheckValue | undefined {
    if (!this.isChecked) return undefined;
    return (spec, value, input) => this.check(node, spec, value, input);
  }

  private check(node: PreparedNode, spec: InputSpec, value: unknown, input: string): unknown {
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

/** Folders of a run; a node that needs one that the job does not name fails. */
function foldersOf({ outputDir, inputDir }: GraphRun): Folders {
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
