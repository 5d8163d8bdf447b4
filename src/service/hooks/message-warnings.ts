import type { Config } from "../../render/config/config.js";
import type { AgentGraphs } from "../agent/agent.js";
import type { HookLog } from "./hook-log.js";

type Senders = Config["channels"]["web"]["incoming"];

/** Whether runs of the default graph take a text as their message. */
export const takesText = (graphs: AgentGraphs | undefined): boolean =>
  graphs === undefined || keysOf(graphs, graphs.default.name)?.has("message") !== false;

/** Warns of graphs that take no message, and of senders whose messages the default graph refuses. */
export function warnOfMessages(graphs: AgentGraphs | undefined, senders: Senders, log: HookLog): void {
  if (graphs === undefined) return;
  for (const name of graphs.names) {
    if (keysOf(graphs, name)?.size !== 0) continue;
    log.warn({}, `the graph "${name}" takes no message: requests with one are refused, "{}" renders it as it is`);
  }
  const taken = keysOf(graphs, graphs.default.name);
  if (taken === undefined) return;
  for (const [name, { message, placeholders }] of Object.entries(senders)) {
    // what a text holds is known with its payload
    if (placeholders === undefined) continue;
    const own = message === undefined ? [] : ["message"];
    const unknown = [...own, ...Object.keys(placeholders)].find((key) => !taken.has(key));
    if (unknown === undefined) continue;
    log.warn(
      {},
      `incoming.${name}: the default graph has no key ${JSON.stringify(unknown)}: its deliveries are refused`,
    );
  }
}

/** Keys of the messages of a graph; undefined where the agent does not tell them. */
function keysOf(graphs: AgentGraphs, name: string | null): ReadonlySet<string> | undefined {
  const schema = name === null ? undefined : (graphs.schemaOf(name) as { properties?: object } | undefined);
  return schema?.properties && new Set(Object.keys(schema.properties));
}
