// Compares a run with the figures of an earlier one, and joins both.

/** More than this is a loss, not noise. */
const LOSS = 0.1;

/** Whether two runs are of the same machine: else neither times nor ratios say anything about the code. */
export const isSameMachine = (now, before) =>
  ["processor", "processors", "isa"].every((key) => now.machine[key] === before.machine[key]);

/**
 * Returns what a run lost, as `{ id, before, now }`. With a peer its ratio counts, because a busy machine slows both;
 * without one, the time.
 */
export function lossesOf(rows, before) {
  const earlier = new Map(before.flatMap(marksOf).map((mark) => [mark.id, mark]));
  return rows.flatMap(marksOf).flatMap(({ id, value, isTime }) => {
    const old = earlier.get(id)?.value;
    if (old === undefined) return [];
    const isLoss = isTime ? value > old * (1 + LOSS) : value < old * (1 - LOSS);
    return isLoss ? [{ id, before: old, now: value }] : [];
  });
}

function marksOf({ id, ours, peers }) {
  const measured = peers.filter(({ ratio }) => ratio !== undefined);
  if (measured.length === 0) return [{ id, value: ours.median, isTime: true }];
  return measured.map(({ name, ratio }) => ({ id: `${id}, ${name}`, value: ratio, isTime: false }));
}

/** Returns the measurement of a row with fewer losses, then the faster one. */
export function better(first, second, before) {
  const losses = (row) => lossesOf([row], before).length;
  if (losses(first) !== losses(second)) return losses(first) < losses(second) ? first : second;
  return first.ours.median <= second.ours.median ? first : second;
}

/** The rows of an earlier run with those that a new one measured, in the order of `ids`. */
export function joined(before, measured, ids) {
  const rows = new Map([...before, ...measured].map((row) => [row.id, row]));
  return ids.filter((id) => rows.has(id)).map((id) => rows.get(id));
}
