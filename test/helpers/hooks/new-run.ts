import type { RunTerms, StartFields } from "#src/service/hooks/run.js";
import type { NewRun } from "#src/service/hooks/store/store.js";

type Fields = Partial<NewRun & StartFields & RunTerms>;

/** A run for a store, of fields on one level. */
export function newRun(id: string, fields: Fields = {}): NewRun {
  const { origin = "agent", name = null, traceparent, promptFacts, ...rest } = fields;
  const { timeoutSeconds = 600, priority = 0, dueMark = null, deadlineMark = null, tags = [], ...own } = rest;
  return {
    id,
    sessionKey: "hook:a",
    start: { origin, name, traceparent, promptFacts },
    terms: { timeoutSeconds, priority, dueMark, deadlineMark, tags },
    createdAt: 1000,
    createdMark: 900,
    maxWakeBytes: 1_000_000,
    compose: (pending) => [...pending, `message of ${id}`].join("|"),
    ...own,
  };
}
