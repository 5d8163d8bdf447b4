/** What was found out about one value, and what that hung on besides. */
interface Finding {
  readonly on: readonly unknown[];
  readonly found: unknown;
}

const findings = new WeakMap<object, Map<symbol, Finding>>();

/** Freezes a value that `parseJson` made, and all in it: what is found out about it by `recall` holds for ever. */
export function freezeJson(value: unknown): void {
  freeze(value);
  if (typeof value === "object" && value !== null && !findings.has(value)) findings.set(value, new Map());
}

function freeze(value: unknown): void {
  if (typeof value !== "object" || value === null || Object.isFrozen(value)) return;
  Object.freeze(value);
  for (const item of Object.values(value)) freeze(item);
}

/** Whether `freezeJson` was given this very value. */
export const isFrozenJson = (value: object): boolean => findings.has(value);

const NOTHING: readonly unknown[] = [];
const always = () => true;

/**
 * What `find` answers: of a value of `freezeJson` once, as long as `on`, all else that the answer hangs on, stays the same;
 * of any other value each time. `what` names the finding; one that is not kept is looked for again.
 */
export function recall<Found>(
  value: object,
  what: symbol,
  find: () => Found,
  on: readonly unknown[] = NOTHING,
  isKept: (found: Found) => boolean = always,
): Found {
  const known = findings.get(value);
  const last = known?.get(what);
  if (last !== undefined && last.on.length === on.length && last.on.every((it, i) => it === on[i])) {
    return last.found as Found;
  }
  const found = find();
  if (known !== undefined && isKept(found)) known.set(what, { on, found });
  return found;
}
