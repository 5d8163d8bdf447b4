// The hook service as a library: starts agent runs over HTTP and streams their events.
import "../../base/package.js"; // first: in a bundle it throws the sentence that says what to do

export type { Agent, AgentContext, AgentGraphs, AgentRun, RunGraph } from "../agent/agent.js";
export type { GraphSources } from "../agent/agent-graphs.js";
export { createGraphAgent, type GraphAgent, type GraphAgentOptions } from "../agent/graph-agent.js";
export { type Clock, systemClock } from "./clock.js";
export { createHookService } from "./create-hook-service.js";
export type { FileStore, OpenedFile } from "./files/file-store.js";
export type { S3Credentials } from "./files/s3-client.js";
export { createS3Files, type S3FilesOptions } from "./files/s3-files.js";
export type { HookConfigInput, HookLog } from "./hook-config.js";
export { HookError } from "./hook-error.js";
export type { HookRouter, HookService, HookServiceOptions } from "./hook-service.js";
export type { Runs } from "./runs/create-runs.js";
export { createMemoryStore } from "./store/memory-store.js";
export { createSqliteStore, type SqliteStoreOptions } from "./store/sqlite/sqlite-store.js";
export type { Store } from "./store/store.js";
