import { inputError } from "../../errors.js";
import type { Host } from "../../host/types.js";
import { cloneJson } from "../../io/json-lossless.js";
import type { OutputHandling } from "../../io/output-files.js";
import type { Folders, HiddenType, NodeConfig } from "../../nodes/define.js";
import type { ChoiceContext, InputSpec } from "../../nodes/inputs.js";
import type { Registry } from "../../nodes/registry.js";
import { checkSocket } from "../../nodes/sockets.js";
import { convertInput, expectedOf } from "../../nodes/values.js";
import type { DeviceChoice } from "../../tensor/device/choice.js";
import type { Happening } from "../events.js";
import type { RunMemory } from "../memory/run-memory.js";
import type { Graph } from "../parse.js";
import type { PreparedNode } from "../prepared.js";
import type { CheckValue } from "./gather.js";
import { foldersOf, RunningNode } from "./node-context.js";

export interface SettingOptions {
  readonly graph: Graph;
  readonly registry: Registry;
  readonly memory: RunMemory;
  readonly signal: AbortSignal;
  /** Values that come through links are checked before a node gets them. */
  readonly isChecked: boolean;
  readonly host?: Host;
  readonly outputDir?: string;
  readonly inputDir?: string;
  readonly clock: () => Date;
  /** No node may reach the network, those of expansions included. */
  readonly isOffline: boolean;
  readonly fetch: typeof fetch;
  readonly config: NodeConfig;
  readonly output?: OutputHandling;
  /** Where nodes compute; as around the run where absent. */
  readonly device?: DeviceChoice;
  /** What nodes see as the PROMPT; undefined hides it. */
  readonly prompt: unknown;
  readonly extraPnginfo: unknown;
}

/** What all nodes of one run share. */
export class RunSetting {
  readonly choiceContext: ChoiceContext;
  private readonly folders: Folders;
  private readonly extraPnginfo: unknown;
  private promptCopy: unknown;

  constructor(
    readonly options: SettingOptions,
    private readonly emit: (happening: Happening) => void,
  ) {
    this.choiceContext = { host: options.host, inputDir: options.inputDir };
    this.folders = foldersOf(options);
    // nodes write into it, so the run has its own
    this.extraPnginfo = cloneJson(options.extraPnginfo);
  }

  contextOf(node: PreparedNode): RunningNode {
    const { memory, signal } = this.options;
    const stateOf = () => memory.cache.stateOf(node.id, node.definition);
    return new RunningNode(node.id, signal, stateOf, this.folders, this.options, this);
  }

  progress(nodeId: string, value: number, max: number, preview: unknown): void {
    this.emit(
      preview === undefined
        ? { type: "progress", nodeId, value, max }
        : { type: "progress", nodeId, value, max, preview },
    );
  }

  warn(nodeId: string, message: string): void {
    this.emit({ type: "warning", nodeId, message });
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
    // the package's own nodes write into nothing
    if (this.options.memory.isContained) return this.options.prompt;
    this.promptCopy ??= cloneJson(this.options.prompt);
    return this.promptCopy;
  }

  /** Checks of the values a node gets through links; undefined where the run takes them as they come. */
  checkOf({ id, definition }: PreparedNode): CheckValue | undefined {
    if (!this.options.isChecked) return undefined;
    return (spec, value, input) => this.check(spec, value, { nodeId: id, node: definition.key, input });
  }

  private check(spec: InputSpec, value: unknown, at: { nodeId: string; node: string; input: string }): unknown {
    if (spec.type === "*") return value;
    const isAbsent = value === undefined || value === null;
    if (isAbsent && spec.optional) return spec.options.default;
    if (CONVERTED.has(spec.type)) return convertInput(spec, value, at, { context: this.choiceContext });
    if (isAbsent) throw inputError("input.missing", at, expectedOf(spec), value);
    return checkSocket(spec.type, value, at);
  }
}

const CONVERTED: ReadonlySet<string> = new Set(["INT", "FLOAT", "STRING", "BOOLEAN", "COMBO"]);
