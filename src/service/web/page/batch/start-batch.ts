import type { Client } from "../api/client.ts";
import type { PlannedRun } from "./plan.ts";

/**
 * Starts the runs of a batch one after the other, so that they wait in its order. Each has a key: one whose response was
 * lost is not started twice. Rejects with the first refusal; the runs before it are started.
 */
export async function startBatch(
  client: Client,
  id: string,
  common: { readonly graph: string | undefined; readonly priority: number },
  runs: readonly PlannedRun[],
  onStarted: (count: number) => void,
): Promise<void> {
  for (const [index, { values, tags }] of runs.entries()) {
    const labels = tags.slice(1).map((tag) => tag.replace(/^[xy]\d+ /, ""));
    const name = labels.join(", ");
    const body = { message: JSON.stringify(values), tags, name, idempotencyKey: `batch-${id}-${index}`, ...common };
    await client.post("hooks/agent", body);
    onStarted(index + 1);
  }
}
