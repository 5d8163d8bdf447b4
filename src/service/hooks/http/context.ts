import type { Agent } from "../../agent/agent.js";
import type { Clock } from "../clock.js";
import type { FileStore } from "../files/file-store.js";
import type { HookConfig, HookLog } from "../hook-config.js";
import type { Runs } from "../runs/create-runs.js";
import type { Outbox } from "../store/deliveries.js";
import type { AuthBudget, StartRates } from "./access/rates.js";
import type { Tokens, UrlSigner } from "./access/token.js";
import type { Metrics } from "./metrics.js";
import type { Parameters, RequestSchemas } from "./request-schemas.js";
import type { ResponseSchemas } from "./response-schemas.js";
import type { StreamMemory } from "./stream/stream-memory.js";
import type { StreamSlots, Turns } from "./stream/stream-writer.js";

/** Everything that the probes of a service or a worker share. */
export interface ProbeContext {
  readonly config: HookConfig;
  readonly tokens: Tokens;
  readonly budget: AuthBudget;
  readonly signer: UrlSigner;
  readonly runs: Pick<Runs, "closing" | "ping" | "now">;
  readonly metrics: Pick<Metrics, "contentType" | "text" | "countRequest" | "authFailed">;
  readonly log: HookLog;
  readonly clock: Clock;
  /** Returns the id of a new request. */
  readonly newId: () => string;
}

/** Everything that the routes of one service share. */
export interface HookContext extends ProbeContext {
  readonly startRates: StartRates;
  readonly schemas: RequestSchemas & ResponseSchemas;
  readonly parameters: Parameters;
  readonly slots: StreamSlots;
  readonly memory: StreamMemory;
  readonly turns: Turns;
  readonly runs: Runs;
  readonly files: FileStore;
  /** Deliveries to webhooks. */
  readonly outbox: Outbox;
  /** Looks for deliveries that are due. */
  readonly wakeDeliverer: () => void;
  /** Whether the runs run in this process, whose agent then has what they need. */
  readonly rendersHere: boolean;
  /** The agent's own look at the message of a request, and its graphs. */
  readonly agent: Pick<Agent, "check" | "graphs">;
  readonly metrics: Metrics;
}
