import type { RunGraph } from "../../../agent/agent.js";
import { graphHash } from "../graph-hash.js";
import type { Transaction } from "./connection.js";
import type { SqlRow } from "./driver.js";
import { fromStored, fromStoredOrNull, toStored } from "./text.js";

/** Columns of a run's graph, trace and facts, and the join that has them. */
export const GRAPH = "messages.graph_name, graphs.text AS graph_text, messages.traceparent, messages.prompt_facts";
export const JOIN_GRAPHS = "LEFT JOIN lk.graphs ON graphs.hash = messages.graph";

/** Tries to lock a graph's row, which a sweep may delete meanwhile. */
const LOCK_ATTEMPTS = 10;

// decision 277
/** Stores a graph that no run has yet, and keeps it from sweeps until the transaction ends. Returns its hash. */
export async function lockGraph(tx: Transaction, { text }: RunGraph): Promise<string> {
  const hash = graphHash(text);
  for (let attempt = 0; attempt < LOCK_ATTEMPTS; attempt++) {
    const [row] = await tx.query("SELECT 1 FROM lk.graphs WHERE hash = $1 FOR KEY SHARE", hash);
    if (row !== undefined) return hash;
    await tx.query("INSERT INTO lk.graphs VALUES ($1, $2) ON CONFLICT DO NOTHING", hash, toStored(text));
  }
  throw new Error("a graph's row could not be locked");
}

export const toGraph = ({ graph_name: name, graph_text: text }: SqlRow): RunGraph | null =>
  text === null ? null : { name: fromStoredOrNull(name), text: fromStored(text) };

/** Deletes the messages of runs, and the graphs that no other run has; those of runs that start now stay. */
export async function removeMessages(tx: Transaction, seqs: readonly NonNullable<SqlRow[string]>[]): Promise<void> {
  const removed = await tx.query("DELETE FROM lk.messages WHERE run = ANY($1) RETURNING graph", seqs);
  const hashes = [...new Set(removed.flatMap(({ graph }) => (graph === null ? [] : [graph!])))];
  if (hashes.length === 0) return;
  const lock = "SELECT hash FROM lk.graphs WHERE hash = ANY($1) FOR UPDATE SKIP LOCKED";
  const locked = (await tx.query(lock, hashes)).map(({ hash }) => hash!);
  // another statement: it sees the runs that were committed before the lock
  const unused = "NOT EXISTS (SELECT 1 FROM lk.messages WHERE messages.graph = graphs.hash)";
  await tx.query(`DELETE FROM lk.graphs WHERE hash = ANY($1) AND ${unused}`, locked);
}
