import { LatentkitError } from "../../errors.js";
import type { Host } from "../../host/types.js";
import type { OutputHandling } from "../../io/output-files.js";
import type { Folders, NodeConfig, NodeContext } from "../../nodes/define.js";

/** What all nodes of a run share. */
export interface RunPlace {
  readonly host?: Host;
  readonly outputDir?: string;
  readonly inputDir?: string;
  readonly clock: () => Date;
  readonly fetch: typeof fetch;
  readonly config: NodeConfig;
  readonly output?: OutputHandling;
}

/** The context of one node while it runs. */
export class RunningNode implements NodeContext {
  private isOver = false;

  constructor(
    readonly nodeId: string,
    readonly signal: AbortSignal,
    private readonly stateOf: () => Record<string, unknown>,
    readonly folders: Folders,
    private readonly place: RunPlace,
    private readonly tell: {
      progress(nodeId: string, value: number, max: number, preview: unknown): void;
      warn(nodeId: string, message: string): void;
    },
  ) {}

  get state(): Record<string, unknown> {
    return this.stateOf();
  }

  get host(): Host {
    if (this.place.host !== undefined) return this.place.host;
    const message = `Node ${this.nodeId}: expected a host that loads models, received none.`;
    throw new LatentkitError("host.missing", message, { nodeId: this.nodeId });
  }

  get clock(): () => Date {
    return this.place.clock;
  }

  get fetch(): typeof fetch {
    return this.place.fetch;
  }

  get config(): NodeConfig {
    return this.place.config;
  }

  get output(): OutputHandling | undefined {
    return this.place.output;
  }

  // functions that nodes take out of the context, made for those that do
  get progress(): (value: number, max: number, preview?: unknown) => void {
    return (value, max, preview) => {
      if (!this.isOver) this.tell.progress(this.nodeId, value, max, preview);
    };
  }

  get log(): (message: string) => void {
    return (message) => {
      if (!this.isOver) this.tell.warn(this.nodeId, message);
    };
  }

  /** What the node still says is not heard. */
  close(): void {
    this.isOver = true;
  }
}

/** Folders of a run; a node that needs one that was not given fails. */
export function foldersOf(place: { outputDir?: string; inputDir?: string }): Folders {
  const given = (name: string, path: string | undefined): string => {
    if (path !== undefined) return path;
    throw new LatentkitError("usage.invalid", `${name}: expected a folder, received none.`);
  };
  return {
    get output() {
      return given("outputDir", place.outputDir);
    },
    get input() {
      return given("inputDir", place.inputDir);
    },
  };
}
