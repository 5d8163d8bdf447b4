import { Admission } from "../admission.js";
import { type CreateGroupResult, groupReplyOf, type NewGroup, type NewKey, type NewRun, type Store } from "../store.js";
import type { Connection, Transaction } from "./connection.js";
import { fromStored, type SqlRow, type SqlValue, toStored, toStoredOrNull } from "./driver.js";
import { firstOf, toGroupEnd } from "./event-rows.js";
import { createNothing, grow, LOAD, LOCK_ATTEMPTS, lockGraph, NO_WAKES, saveReply, takeWakes } from "./inbox.js";

// A dozen statements for a thousand runs: single starts would hold the sessions' locks for thousands of exchanges.
/** As `createRun` for each run, by a number of statements that does not grow with the runs. */
export async function createGroup(tx: Transaction, group: NewGroup, key?: NewKey): Promise<CreateGroupResult> {
  const sessions = await lockSessions(tx, group.runs);
  const scope = fullScope(sessions, group.runs);
  if (scope !== null) return createNothing(tx, key, { kind: "full", scope });
  const runs = await composeRuns(tx, sessions, group.runs);
  const taken = [...sessions.values()];
  const wakes = sum(taken.map(({ takenWakes }) => takenWakes));
  if (wakes > 0) await grow(tx, { wakes: -wakes, bytes: -sum(taken.map(({ takenBytes }) => takenBytes)) });
  const graphs = new Map<string, string>();
  for (const { graph } of group.runs) {
    if (graph && !graphs.has(graph.text)) graphs.set(graph.text, await lockGraph(tx, graph));
  }
  const earlier = key && (await saveReply(tx, key, groupReplyOf(group)));
  if (earlier) return tx.undo({ kind: "replayed", stored: earlier });
  return { kind: "created", seqs: await insertRuns(tx, group.id, runs, taken, graphs) };
}

interface LockedSession {
  readonly id: number;
  /** Wakes that are pending, and how many of them runs of the group take. */
  pending: number;
  takenWakes: number;
  takenBytes: number;
  /** Runs of the group. */
  runs: number;
  /** Number of active runs more that it may have. */
  freeActive: number;
  queued: number;
  readonly running: number;
}

/** Locks the sessions of runs, in one order, so that no two groups wait for each other; creates those that are absent. */
async function lockSessions(tx: Transaction, runs: readonly NewRun[]): Promise<Map<string, LockedSession>> {
  const keys = [...new Set(runs.map(({ sessionKey }) => toStored(sessionKey)))];
  for (let attempt = 0; attempt < LOCK_ATTEMPTS; attempt++) {
    await tx.query(
      "INSERT INTO lk.sessions (key) SELECT key FROM unnest($1::text[]) AS key ORDER BY key ON CONFLICT DO NOTHING",
      keys,
    );
    const lock = "SELECT id, key, wakes FROM lk.sessions WHERE key = ANY($1) ORDER BY key FOR NO KEY UPDATE";
    const rows = await tx.query(lock, keys);
    // one that was there may have been deleted before it was locked
    if (rows.length < keys.length) continue;
    const { room } = runs[0]!;
    const most = room === undefined ? 0 : new Admission(room).mostCounted;
    const loads = await tx.query(
      `SELECT (SELECT per_session FROM lk.queue)
           - (SELECT count(*) FROM lk.runs WHERE runs.session = own.id AND active) AS free_active,
         ${LOAD("own.id", "$2")}
       FROM unnest($1::bigint[]) WITH ORDINALITY AS own (id, n) ORDER BY n`,
      rows.map(({ id }) => id!),
      most,
    );
    return new Map(
      rows.map((row, index) => {
        const { free_active: freeActive, queued, running } = loads[index]!;
        const own = { id: Number(row.id), pending: Number(row.wakes), takenWakes: 0, takenBytes: 0, runs: 0 };
        const load = { freeActive: Number(freeActive), queued: Number(queued), running: Number(running) };
        return [fromStored(row.key), { ...own, ...load }];
      }),
    );
  }
  throw new Error("the rows of sessions could not be locked");
}

/** A run with its message and what its session makes of it. */
interface ComposedRun {
  readonly run: NewRun;
  readonly session: number;
  readonly message: string;
  readonly isActive: boolean;
}

/** The queue that has no room for one of the runs; null: all are admitted. */
function fullScope(sessions: ReadonlyMap<string, LockedSession>, runs: readonly NewRun[]) {
  const { room } = runs[0]!;
  if (room === undefined) return null;
  const admission = new Admission(room);
  for (const { sessionKey, terms } of runs) {
    const session = sessions.get(sessionKey)!;
    const scope = admission.refusal(session, terms.dueMark !== null);
    if (scope !== null) return scope;
    session.queued += 1;
  }
  return null;
}

/** Composes the messages, with the pending wakes of their sessions. */
async function composeRuns(
  tx: Transaction,
  sessions: ReadonlyMap<string, LockedSession>,
  runs: readonly NewRun[],
): Promise<ComposedRun[]> {
  const composed: ComposedRun[] = [];
  for (const run of runs) {
    const session = sessions.get(run.sessionKey)!;
    const isActive = session.freeActive > 0;
    session.freeActive -= 1;
    session.runs += 1;
    const wakes = session.pending > 0 ? await takeWakes(tx, session.id, run.maxWakeBytes) : NO_WAKES;
    session.pending -= wakes.texts.length;
    session.takenWakes += wakes.texts.length;
    session.takenBytes += wakes.bytes;
    const message = run.compose(wakes.texts);
    if (message === null) throw new Error("a run of a group has no message");
    composed.push({ run, session: session.id, message, isActive });
  }
  return composed;
}

async function insertRuns(
  tx: Transaction,
  groupId: string,
  composed: readonly ComposedRun[],
  sessions: readonly LockedSession[],
  graphs: ReadonlyMap<string, string>,
): Promise<number[]> {
  const columnOf = <T extends SqlValue>(read: (composed: ComposedRun) => T) => composed.map(read);
  const rows = await tx.query(
    `INSERT INTO lk.runs (id, session, origin, name, state, timeout_seconds, created_at, priority, due_mark,
       deadline_mark, delayed, tags, active)
     SELECT id, session, origin, name, 'queued', timeout_seconds, created_at, priority, due_mark, deadline_mark,
       due_mark IS NOT NULL, tags, active
     FROM unnest($1::text[], $2::bigint[], $3::text[], $4::text[], $5::double precision[], $6::bigint[], $7::integer[],
       $8::bigint[], $9::bigint[], $10::text[], $11::boolean[]) WITH ORDINALITY
       AS own (id, session, origin, name, timeout_seconds, created_at, priority, due_mark, deadline_mark, tags, active, n)
     ORDER BY n RETURNING seq`,
    columnOf(({ run }) => toStored(run.id)),
    columnOf(({ session }) => session),
    columnOf(({ run }) => run.start.origin),
    columnOf(({ run }) => toStoredOrNull(run.start.name ?? null)),
    columnOf(({ run }) => run.terms.timeoutSeconds),
    columnOf(({ run }) => run.createdAt),
    columnOf(({ run }) => run.terms.priority),
    columnOf(({ run }) => run.terms.dueMark),
    columnOf(({ run }) => run.terms.deadlineMark),
    columnOf(({ run }) => (run.terms.tags.length === 0 ? null : JSON.stringify(run.terms.tags))),
    columnOf(({ isActive }) => isActive),
  );
  // numbered in the order of the rows
  const seqs = rows.map(({ seq }) => Number(seq)).sort((a, b) => a - b);
  const tags = composed.flatMap(({ run }, index) => run.terms.tags.map((tag) => ({ tag, seq: seqs[index]! })));
  await tx.query(
    `WITH message AS (
       INSERT INTO lk.messages
         SELECT * FROM unnest($1::bigint[], $2::text[], $3::text[], $4::text[], $5::text[], $14::text[])
     ), tagged AS (
       INSERT INTO lk.tags SELECT * FROM unnest($6::text[], $7::bigint[])
     ), counted AS (
       UPDATE lk.sessions SET runs = sessions.runs + own.runs, wakes = sessions.wakes - own.wakes,
         wake_bytes = sessions.wake_bytes - own.bytes
       FROM unnest($8::bigint[], $9::bigint[], $10::bigint[], $11::bigint[]) AS own (id, runs, wakes, bytes)
       WHERE sessions.id = own.id
     ), added AS (
       INSERT INTO lk.run_groups (id, size) VALUES ($12, $13) RETURNING seq
     )
     INSERT INTO lk.group_runs (run, run_group, run_index)
     SELECT own.run, added.seq, own.n - 1 FROM added, unnest($1::bigint[]) WITH ORDINALITY AS own (run, n)`,
    seqs,
    columnOf(({ message }) => toStored(message)),
    columnOf(({ run: { graph } }) => (graph ? graphs.get(graph.text)! : null)),
    columnOf(({ run }) => toStoredOrNull(run.graph?.name ?? null)),
    columnOf(({ run }) => run.start.traceparent ?? null),
    tags.map(({ tag }) => tag),
    tags.map(({ seq }) => seq),
    sessions.map(({ id }) => id),
    sessions.map(({ runs }) => runs),
    sessions.map(({ takenWakes }) => takenWakes),
    sessions.map(({ takenBytes }) => takenBytes),
    toStored(groupId),
    composed.length,
    columnOf(({ run }) => run.start.promptFacts ?? null),
  );
  return seqs;
}

const sum = (values: readonly number[]): number => values.reduce((total, value) => total + value, 0);

// decisions: A group's stream counts the ends of its runs
/** Counts the end of a run, given its group; the ends of a group wait for each other's commits. Returns the group's id. */
export async function countEnd(tx: Transaction, group: number, run: number): Promise<string> {
  const [row] = await tx.query(
    `WITH counted AS (UPDATE lk.run_groups SET ended = ended + 1 WHERE seq = $1 RETURNING id, ended)
     UPDATE lk.group_runs SET position = counted.ended FROM counted WHERE group_runs.run = $2 RETURNING counted.id`,
    group,
    run,
  );
  return fromStored(row!.id);
}

/** Largest integer of a position. */
const MOST_RUNS = 2 ** 31 - 1;

/** The groups of runs. */
export const groupRows = (db: Connection): Pick<Store, "readGroup" | "groupOf"> => ({
  /** One statement: the counts and the ends are of the same moment. */
  async readGroup(id, after, most) {
    const rows = await db.query(
      `WITH own AS (SELECT seq, size, ended FROM lk.run_groups WHERE id = $1)
       SELECT own.size, own.ended, page.*,
         (SELECT min(position) FROM lk.group_runs WHERE group_runs.run_group = own.seq) AS oldest
       FROM own LEFT JOIN LATERAL (
         SELECT group_runs.position, group_runs.run_index, runs.id, runs.ended_mark
         FROM lk.group_runs JOIN lk.runs ON runs.seq = group_runs.run
         WHERE group_runs.run_group = own.seq AND group_runs.position > $2 ORDER BY group_runs.position LIMIT $3
       ) AS page ON true ORDER BY page.position`,
      toStored(id),
      Math.min(after, MOST_RUNS),
      most,
    );
    const [group] = rows;
    if (group === undefined) return null;
    const ended = Number(group.ended);
    const ends = rows.filter((row) => row.position !== null).map(toGroupEnd);
    return { size: Number(group.size), ended, oldest: Number(group.oldest ?? ended + 1), ends };
  },
  async groupOf(runId) {
    const sql = `SELECT run_groups.id FROM lk.runs JOIN lk.group_runs ON group_runs.run = runs.seq
      JOIN lk.run_groups ON run_groups.seq = group_runs.run_group WHERE runs.id = $1`;
    return firstOf(await db.query(sql, toStored(runId)), ({ id }) => fromStored(id));
  },
});

/** Takes runs out of their groups, and deletes the groups that have no other. */
export async function leaveGroups(tx: Transaction, runs: readonly NonNullable<SqlRow[string]>[]): Promise<void> {
  const left = await tx.query("DELETE FROM lk.group_runs WHERE run = ANY($1) RETURNING run_group", runs);
  if (left.length === 0) return;
  const unused = "NOT EXISTS (SELECT 1 FROM lk.group_runs WHERE run_group = run_groups.seq)";
  const groups = [...new Set(left.map(({ run_group: group }) => Number(group)))];
  await tx.query(`DELETE FROM lk.run_groups WHERE seq = ANY($1) AND ${unused}`, groups);
}
