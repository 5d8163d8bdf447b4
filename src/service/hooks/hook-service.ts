import type { IncomingMessage, ServerResponse } from "node:http";
import type { Duplex } from "node:stream";
import type { Agent } from "../agent/agent.js";
import type { Clock } from "./clock.js";
import type { FileStore } from "./files/file-store.js";
import type { HookConfigInput, HookLog } from "./hook-config.js";
import type { Runs } from "./runs/create-runs.js";
import type { HeartbeatResult } from "./runs/run-starter.js";
import type { Store } from "./store/store.js";

// While it drains, only starts are refused; streams, lists and cancels go on.
// A stop waits at most 1 s for last frames; the stream of a queued run ends without a last event.
/** Options of `createHookService`. */
export interface HookServiceOptions {
  /** The work of a run. */
  readonly agent: Agent;
  /** @internal Agent of runs that `latentkit render --store` queues; without it, other processes render them. */
  readonly batchAgent?: Agent;
  /** Keeper of runs and events. Default: in memory, gone with the process. */
  readonly store?: Store;
  /** Keeper of the files that runs report, as `createS3Files` makes one. Default: they stay where the agent wrote them. */
  readonly files?: FileStore;
  /** The keys of `channels.web`, and `limits`, as docs/configuration.md has them. */
  readonly config: HookConfigInput;
  /** A pino logger, or one like it. Default: warnings and errors to stderr. */
  readonly logger?: HookLog;
  /** Source of the time. Default: the system's. */
  readonly clock?: Clock;
  /** Leaves the runs to the workers of a shared store (`startWorker`); the agent then checks messages only. Default: false. */
  readonly workers?: boolean;
}

/** An Express router by its shape: `app.use(router)` takes it, and it needs no types of Express. */
export type HookRouter = (req: IncomingMessage, res: ServerResponse, next: (error?: unknown) => void) => void;

/** A hook service: a router to mount, the runs behind it, and its end. */
export interface HookService {
  /** Handles its documented paths and no others. Mount it in any Express application, before the body parsers. */
  readonly router: HookRouter;
  /**
   * Listener for the `upgrade` event of an HTTP server, which opens the WebSocket of ComfyUI's classic API on `/ws` and
   * refuses all else. Absent unless `comfy_classic` opens that API.
   */
  readonly upgrade?: (req: IncomingMessage, socket: Duplex, head: Buffer) => void;
  readonly runs: Runs;
  /** Starts one run per session, or of the one session, that takes the pending wake events. */
  heartbeat(options?: { sessionKey?: string }): Promise<HeartbeatResult>;
  /** Refuses starts, lets running agents end for `drainSeconds` (default: the limit), interrupts the rest, ends streams. */
  close(drainSeconds?: number): Promise<void>;
}
