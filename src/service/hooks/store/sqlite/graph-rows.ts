import type { RunGraph } from "../../../agent/agent.js";
import { graphHash } from "../graph-hash.js";
import type { NewRun } from "../store.js";
import type { Connection } from "./connection.js";
import type { SqlRow } from "./driver.js";

/** Columns of a run's graph, trace and facts, and the join that has them. */
export const GRAPH = "messages.graph_name, graphs.text AS graph_text, messages.traceparent, messages.prompt_facts";
export const JOIN_GRAPHS = "LEFT JOIN graphs ON graphs.hash = messages.graph";

/** Stores the message, trace and facts of a run, and its graph where no other run has it. */
export function saveMessage(
  db: Connection,
  run: number,
  message: string,
  { graph = null, start: { traceparent = null, promptFacts = null } }: NewRun,
): void {
  const hash = graph && graphHash(graph.text);
  if (graph !== null) db.run("INSERT OR IGNORE INTO graphs VALUES (?, ?)", hash, JSON.stringify(graph.text));
  const name = graph === null || graph.name === null ? null : JSON.stringify(graph.name);
  const values = [run, JSON.stringify(message), hash, name, traceparent, promptFacts];
  db.run("INSERT INTO messages VALUES (?, ?, ?, ?, ?, ?)", ...values);
}

export function toGraph({ graph_name: name, graph_text: text }: SqlRow): RunGraph | null {
  if (text === null) return null;
  const parse = (json: unknown) => JSON.parse(String(json)) as string;
  return { name: name === null ? null : parse(name), text: parse(text) };
}

/** Deletes the message of a run, and its graph where no other run has it. Returns the number of deleted rows. */
export function removeMessage(db: Connection, run: number): number {
  const graph = db.get("SELECT graph FROM messages WHERE run = ?", run)?.graph ?? null;
  const { changes } = db.run("DELETE FROM messages WHERE run = ?", run);
  if (graph === null) return changes;
  const sql = "DELETE FROM graphs WHERE hash = ? AND NOT EXISTS (SELECT 1 FROM messages WHERE graph = ?)";
  return changes + db.run(sql, graph, graph).changes;
}
