import { LatentkitError } from "../../base/errors.js";
import type { Host } from "../../host/types.js";
import type { OutputHandling } from "../../io/files/output-files.js";
import type { Folders, NodeConfig, NodeContext } from "../../nodes/define.js";
import type { PreparedNode } from "../prepared.js";
import type { RunSetting } from "./setting.js";

/** The context of one node while it runs: a view of what its run holds. */
export class RunningNode implements NodeContext {
  readonly nodeId: string;
  private isOver = false;
  private reached: [value: number, max: number] = [0, 0];

  constructor(
    private readonly node: PreparedNode,
    private readonly setting: RunSetting,
  ) {
    this.nodeId = node.id;
  }

  get signal(): AbortSignal {
    return this.setting.scope.signal;
  }

  get state(): Record<string, unknown> {
    return this.setting.scope.memory.cache.stateOf(this.nodeId, this.node.definition);
  }

  get folders(): Folders {
    return this.setting.folders;
  }

  get host(): Host {
    const { host } = this.setting.surroundings;
    if (host !== undefined) return host;
    const message = `Node ${this.nodeId}: expected a host that loads models, received none.`;
    throw new LatentkitError("host.missing", message, { nodeId: this.nodeId });
  }

  get readInput(): (name: string, subject?: string) => Promise<Buffer> {
    const { inputs, scope } = this.setting;
    return (name, subject) => inputs.read(name, subject, scope.signal);
  }

  get clock(): () => Date {
    return this.setting.clock;
  }

  get fetch(): typeof fetch {
    return this.setting.fetch;
  }

  get config(): NodeConfig {
    return this.setting.config;
  }

  get output(): OutputHandling | undefined {
    return this.setting.surroundings.outputHandling;
  }

  get isBlocking(): boolean | undefined {
    return this.setting.surroundings.isBlocking;
  }

  // functions that nodes take out of the context, made for those that do
  get progress(): (value: number, max: number, preview?: unknown) => void {
    return (value, max, preview) => {
      if (this.isOver) return;
      this.reached = [value, max];
      // a picture that comes late stands beside what is reached by then: progress never goes back
      const report = (image: unknown) => {
        if (!this.isOver) this.setting.progress(this.nodeId, ...this.reached, image);
      };
      const image = this.setting.previewOf(preview);
      if (!(image instanceof Promise)) return report(image);
      report(undefined);
      image.then(report, (error) => this.log(`No preview: ${error instanceof Error ? error.message : String(error)}`));
    };
  }

  get log(): (message: string) => void {
    return (message) => {
      if (!this.isOver) this.setting.warnings.add(this.node, message);
    };
  }

  /** Drops what the node reports from now on. */
  close(): void {
    this.isOver = true;
  }
}
