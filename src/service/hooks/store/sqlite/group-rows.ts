import type { GroupSlice } from "../../run.js";
import { type CreateGroupResult, type Full, groupReplyOf, type NewGroup, type NewKey } from "../store.js";
import type { Connection } from "./connection.js";
import { createRun, findReply, saveReply } from "./inbox.js";

export function createGroup(
  db: Connection,
  group: NewGroup,
  refusal: () => Full | null,
  key?: NewKey,
): CreateGroupResult {
  const stored = key && findReply(db, key.scope, key.nowMark);
  if (stored) return { kind: "replayed", stored };
  const full = refusal();
  if (full !== null) return full;
  const { lastId } = db.run("INSERT INTO run_groups (id, size) VALUES (?, ?)", group.id, group.runs.length);
  const seqs = group.runs.map((run, index) => {
    const created = createRun(db, run);
    if (created.kind !== "created") throw new Error("a run of a group has no message");
    db.run("INSERT INTO group_runs (run_group, run_index, run) VALUES (?, ?, ?)", lastId, index, created.seq);
    return created.seq;
  });
  if (key) saveReply(db, key, groupReplyOf(group));
  return { kind: "created", seqs };
}

// decision 293
/** Counts the end of a run, of a group or not. */
export function countEnd(db: Connection, runId: string): void {
  const sql = "SELECT run_group, run FROM group_runs WHERE run = (SELECT seq FROM runs WHERE id = ?)";
  const member = db.get(sql, runId);
  if (member === undefined) return;
  db.run("UPDATE run_groups SET ended = ended + 1 WHERE seq = ?", member.run_group!);
  db.run(
    "UPDATE group_runs SET position = (SELECT ended FROM run_groups WHERE seq = run_group) WHERE run = ?",
    member.run!,
  );
}

export function readGroup(db: Connection, id: string, after: number, most: number): GroupSlice | null {
  const group = db.get("SELECT seq, size, ended FROM run_groups WHERE id = ?", id);
  if (group === undefined) return null;
  const oldest = db.get("SELECT min(position) AS oldest FROM group_runs WHERE run_group = ?", group.seq!)!.oldest;
  const ends = db.all(
    `SELECT group_runs.position, group_runs.run_index, runs.id, runs.ended_mark
     FROM group_runs CROSS JOIN runs ON runs.seq = group_runs.run
     WHERE run_group = ? AND position > ? ORDER BY position LIMIT ?`,
    ...[group.seq!, after, most],
  );
  return {
    size: Number(group.size),
    ended: Number(group.ended),
    oldest: Number(oldest ?? Number(group.ended) + 1),
    ends: ends.map((row) => ({
      position: Number(row.position),
      index: Number(row.run_index),
      runId: String(row.id),
      endedMark: Number(row.ended_mark),
    })),
  };
}

export function groupOf(db: Connection, runId: string): string | null {
  const sql = `SELECT run_groups.id FROM runs JOIN group_runs ON group_runs.run = runs.seq
    JOIN run_groups ON run_groups.seq = group_runs.run_group WHERE runs.id = ?`;
  const row = db.get(sql, runId);
  return row === undefined ? null : String(row.id);
}

/** Takes a run out of its group, and deletes the group with its last run. Returns the number of deleted rows. */
export function leaveGroup(db: Connection, run: number): number {
  const group = db.get("SELECT run_group FROM group_runs WHERE run = ?", run)?.run_group;
  if (group === undefined) return 0;
  const { changes } = db.run("DELETE FROM group_runs WHERE run = ?", run);
  const sql = "DELETE FROM run_groups WHERE seq = ? AND NOT EXISTS (SELECT 1 FROM group_runs WHERE run_group = ?)";
  return changes + db.run(sql, group, group).changes;
}
