// A process of its own that runs what it can claim until it is killed: some events with a pause between them, then the
// end. The first event of a start and the last one hold the time.
import { setTimeout as sleep } from "node:timers/promises";
import { createPostgresStore } from "#src/service/hooks/store/postgres/postgres-store.js";
import type { HeldRun } from "#src/service/hooks/store/queue-store.js";

const LEASE_MS = 800;

const [url, schema] = process.argv.slice(2) as [string, string];
const worker = `worker ${process.pid}`;
const store = createPostgresStore({ url, schema, connections: 4 });
const limits = { events: 1000, bytes: 1_000_000 };
const stamp = () => JSON.stringify({ at: Date.now(), worker });

async function work({ run, token }: HeldRun): Promise<void> {
  for (let step = 0; step < 3; step++) {
    await sleep(100);
    const events = [{ event: "delta", data: stamp() }];
    if (!(await store.append(run.id, { skip: 0, events, files: [] }, limits, token))) return;
  }
  const terminal = { event: "done", data: stamp() };
  const ending = { from: ["running"], to: "succeeded", finishedAt: 1, endedMark: 1, error: null, terminal } as const;
  await store.endRun(run.id, ending, { skip: 0, events: [], files: [] }, limits, token);
}

async function everySoOften(ms: number, task: () => Promise<unknown>): Promise<never> {
  for (;;) {
    // a server that is restarting fails some of them
    await task().catch(() => undefined);
    await sleep(ms);
  }
}

void everySoOften(LEASE_MS / 4, () => store.renew(worker, LEASE_MS));
void everySoOften(5, async () => {
  const event = { event: "status", data: stamp() };
  const held = await store.claim({
    worker,
    count: 3,
    leaseMs: LEASE_MS,
    startedAt: 1,
    takesBatches: true,
    nowMark: Date.now(),
    event,
  });
  await Promise.all(held.map((run) => work(run)));
});
