import { existsSync } from "node:fs";
import { resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { describe, LatentkitError } from "../../base/errors.js";
import type { Agent } from "./agent.js";

/**
 * Loads the agent of a module's default export: `(run, { signal, emit, addFile }) => Promise<{ response }>`. It runs on
 * the service's own thread. Fails with config.invalid.
 */
export async function loadAgent(path: string): Promise<Agent> {
  const file = resolve(path);
  if (!existsSync(file)) throw invalid(file, "the file does not exist");
  const module = await import(pathToFileURL(file).href).catch((cause: unknown) => {
    throw invalid(file, `it cannot be loaded: ${cause instanceof Error ? cause.message : String(cause)}`, cause);
  });
  const agent: unknown = (module as { default?: unknown }).default;
  if (typeof agent === "function") return agent as Agent;
  const received = agent === undefined ? "none" : describe(agent);
  throw invalid(file, `expected a function (run, { signal, emit }) as its default export, received ${received}`);
}

const invalid = (file: string, why: string, cause?: unknown) =>
  new LatentkitError("config.invalid", `Agent module ${file}: ${why}.`, {}, { cause });
