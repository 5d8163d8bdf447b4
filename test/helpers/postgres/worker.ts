// A process of its own that claims the runs of a schema, says so, and writes when it is told to: for tests that stop it.
import { createPostgresStore } from "#src/service/hooks/store/postgres/postgres-store.js";

const [url, schema, leaseText] = process.argv.slice(2) as [string, string, string];
const store = createPostgresStore({ url, schema });
const limits = { events: 1000, bytes: 1_000_000 };
const event = { event: "status", data: "{}" };
const held = await store.claim({
  worker: "child",
  count: 100,
  leaseMs: Number(leaseText),
  startedAt: 1,
  takesBatches: true,
  nowMark: Date.now(),
  event,
});
console.log(`claimed ${held.map(({ run }) => run.id).join(" ")}`);
process.stdin.once("data", async () => {
  const [{ run, token }] = held as [(typeof held)[0]];
  const file = { name: "late.png", path: "/late.png", contentType: null };
  const batch = { skip: 0, events: [{ event: "delta", data: '"late"' }], files: [file] };
  const ending = { from: ["running"], to: "succeeded", finishedAt: 1, endedMark: 1, error: null } as const;
  const isAppended = await store.append(run.id, batch, limits, token);
  const ended = await store.endRun(
    run.id,
    { ...ending, terminal: { event: "done", data: "{}" } },
    batch,
    limits,
    token,
  );
  console.log(`wrote ${isAppended} ${ended}`);
  await store.close();
});
