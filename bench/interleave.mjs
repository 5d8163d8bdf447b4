// Measures one row: ours and its peers in turn, a few milliseconds each, so that a busy moment hits all alike.
import { summary } from "./timing.mjs";

const TURN_MS = 8;
/** A row of slow operations ends after fewer turns, but not before these. */
const ROW_MS = 4000;
const LEAST_TURNS = 7;

/** Measures `ours` and `peers` of a row; a peer that is not installed has no figures. */
export async function measureRow(row, { processes, turns, hasPeers }) {
  const { threads = 1, mode = "time", per = 1, unit = "ms", isPinned = false, turnMs = TURN_MS } = row;
  const scale = (mode === "time" && unit === "us" ? 1000 : 1) / per;
  const candidates = [
    { process: processes.node(threads, isPinned), subject: row.subject },
    ...row.peers
      .filter(({ isOurs }) => hasPeers || isOurs)
      .map((peer) => {
        const subject = peer.subject ?? `${peer.name}.${row.subject}`;
        const isPython = /^(torch|numpy|pillow)\./.test(subject);
        return { peer, process: isPython ? processes.python(isPinned) : processes.node(1, isPinned), subject };
      }),
  ];
  for (const candidate of candidates) candidate.values = [];
  const limit = mode === "value" ? 1 : turns;
  const end = performance.now() + ROW_MS;
  for (let turn = 0; turn < limit && (turn < LEAST_TURNS || performance.now() < end); turn++) {
    for (const candidate of candidates) {
      if (candidate.isMissing) continue;
      const { process, subject, values } = candidate;
      const reply = await process.ask({ subject, args: row.args, mode, ms: turnMs });
      if (reply.missing) candidate.isMissing = true;
      else values.push(...reply.values.map((value) => value * scale));
    }
  }
  for (const { process } of candidates) await process.ask({ mode: "forget" });
  const [ours, ...others] = candidates;
  const figures = summary(ours.values);
  return {
    id: idOf(row),
    operation: row.operation,
    shape: row.shape,
    threads,
    unit,
    ours: figures,
    ...(row.limit !== undefined && { limit: row.limit, isReached: figures.median <= row.limit }),
    peers: others.map(({ peer, values, isMissing }) => {
      if (isMissing) return { name: peer.name, must: peer.must };
      const theirs = summary(values);
      const ratio = ((peer.weight ?? 1) * theirs.median) / figures.median;
      const isReached = peer.must === undefined ? undefined : ratio >= peer.must;
      return { name: peer.name, must: peer.must, ...theirs, ratio, isReached };
    }),
  };
}

/** Name of a row in every run; a subset is chosen by parts of it. */
export const idOf = ({ operation, shape, threads = 1 }) =>
  `${operation} ${shape}${threads > 1 ? `, ${threads} threads` : ""}`;
