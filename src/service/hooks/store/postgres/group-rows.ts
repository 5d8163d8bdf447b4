import type { GroupSlice } from "../../run.js";
import { type CreateGroupResult, groupReplyOf, type NewGroup, type NewKey } from "../store.js";
import type { Connection, Transaction } from "./connection.js";
import type { SqlRow } from "./driver.js";
import { createRun, findReply, saveReply } from "./inbox.js";
import { fromStored, toStored } from "./text.js";

export async function createGroup(tx: Transaction, group: NewGroup, key?: NewKey): Promise<CreateGroupResult> {
  // in one order, so that no two groups wait for each other
  const sessions = [...new Set(group.runs.map(({ sessionKey }) => toStored(sessionKey)))];
  await tx.query("SELECT 1 FROM lk.sessions WHERE key = ANY($1) ORDER BY key FOR NO KEY UPDATE", sessions);
  const runs = [];
  for (const run of group.runs) {
    const created = await createRun(tx, run);
    if (created.kind === "full") {
      const stored = key && (await findReply(tx, key.scope, key.nowMark));
      return stored ? { kind: "replayed", stored } : created;
    }
    if (created.kind !== "created") throw new Error("a run of a group has no message");
    runs.push(created.run);
  }
  await tx.query(
    `WITH added AS (INSERT INTO lk.run_groups (id, size) VALUES ($1, $2) RETURNING seq)
     INSERT INTO lk.group_runs (run, run_group, item)
     SELECT member.run, added.seq, member.n - 1 FROM added, unnest($3::bigint[]) WITH ORDINALITY AS member (run, n)`,
    ...[toStored(group.id), runs.length, runs.map(({ seq }) => seq)],
  );
  const earlier = key && (await saveReply(tx, key, groupReplyOf(group)));
  if (earlier) return tx.undo({ kind: "replayed", stored: earlier });
  return { kind: "created", runs };
}

// decision 301
/** Counts the end of a run, given its group; the ends of a group wait for each other's commits. Returns the group's id. */
export async function countEnd(tx: Transaction, group: number, run: number): Promise<string> {
  const [row] = await tx.query(
    `WITH counted AS (UPDATE lk.run_groups SET ended = ended + 1 WHERE seq = $1 RETURNING id, ended)
     UPDATE lk.group_runs SET position = counted.ended FROM counted WHERE group_runs.run = $2 RETURNING counted.id`,
    ...[group, run],
  );
  return fromStored(row!.id);
}

/** One statement: the counts and the ends are of the same moment. */
export async function readGroup(db: Connection, id: string, after: number, most: number): Promise<GroupSlice | null> {
  const rows = await db.query(
    `WITH own AS (SELECT seq, size, ended FROM lk.run_groups WHERE id = $1)
     SELECT own.size, own.ended, page.*,
       (SELECT min(position) FROM lk.group_runs WHERE group_runs.run_group = own.seq) AS oldest
     FROM own LEFT JOIN LATERAL (
       SELECT group_runs.position, group_runs.item, runs.id, runs.ended_mark
       FROM lk.group_runs JOIN lk.runs ON runs.seq = group_runs.run
       WHERE group_runs.run_group = own.seq AND group_runs.position > $2 ORDER BY group_runs.position LIMIT $3
     ) AS page ON true ORDER BY page.position`,
    ...[toStored(id), Math.min(after, MOST_RUNS), most],
  );
  const [group] = rows;
  if (group === undefined) return null;
  const ended = Number(group.ended);
  return {
    ...{ size: Number(group.size), ended, oldest: Number(group.oldest ?? ended + 1) },
    ends: rows
      .filter((row) => row.position !== null)
      .map((row) => ({
        position: Number(row.position),
        index: Number(row.item),
        runId: fromStored(row.id),
        endedMark: Number(row.ended_mark),
      })),
  };
}

/** Largest integer of a position. */
const MOST_RUNS = 2 ** 31 - 1;

export async function groupOf(db: Connection, runId: string): Promise<string | null> {
  const sql = `SELECT run_groups.id FROM lk.runs JOIN lk.group_runs ON group_runs.run = runs.seq
    JOIN lk.run_groups ON run_groups.seq = group_runs.run_group WHERE runs.id = $1`;
  const [row] = await db.query(sql, toStored(runId));
  return row === undefined ? null : fromStored(row.id);
}

/** Takes runs out of their groups, and deletes the groups that have no other. */
export async function leaveGroups(tx: Transaction, runs: readonly NonNullable<SqlRow[string]>[]): Promise<void> {
  const left = await tx.query("DELETE FROM lk.group_runs WHERE run = ANY($1) RETURNING run_group", runs);
  if (left.length === 0) return;
  const unused = "NOT EXISTS (SELECT 1 FROM lk.group_runs WHERE run_group = run_groups.seq)";
  const groups = [...new Set(left.map(({ run_group: group }) => Number(group)))];
  await tx.query(`DELETE FROM lk.run_groups WHERE seq = ANY($1) AND ${unused}`, groups);
}
