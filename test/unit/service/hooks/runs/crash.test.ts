import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { createSqliteStore } from "#src/service/hooks/store/sqlite/sqlite-store.js";
import { temporaryFolder } from "../../../../helpers/folders.js";
import { allEvents, engine, idempotency, isTerminal, request, until } from "../../../../helpers/hooks/hook-runs.js";

const CRASHER = fileURLToPath(new URL("../../../../helpers/hooks/crash-run.js", import.meta.url));
/** Crash points tried; the rest of the statements lies between two that were. */
const POINTS = 16;

/** Starts that the process acknowledged before it died at its n-th statement. */
function crash(path: string, statement: number): Promise<{ wakes: string[]; runs: string[]; all?: number }> {
  return new Promise((resolve) => {
    execFile(process.execPath, [CRASHER, path, String(statement)], { timeout: 120_000 }, (_error, stdout) => {
      const of = (kind: string) =>
        [...stdout.matchAll(new RegExp(`^${kind} (\\S+)$`, "gm"))].map(([, value]) => value!);
      const [all] = of("all");
      resolve({ wakes: of("wake"), runs: of("run"), ...(all === undefined ? {} : { all: Number(all) }) });
    });
  });
}

describe("a process killed at any statement", () => {
  const folder = temporaryFolder();

  it("loses nothing acknowledged: one end a run, one run a wake and a key @long", async () => {
    const { all } = await crash(join(folder(), "whole.db"), Number.MAX_SAFE_INTEGER);
    assert.ok(all !== undefined && all > 50, `${all} statements`);
    let crashed = 0;
    const tryPoints = async (first: number) => {
      for (let point = first; point < POINTS; point += 2) {
        const statement = 1 + Math.floor((point * all) / POINTS);
        const path = join(folder(), `${statement}.db`);
        const told = await crash(path, statement);
        if (told.all !== undefined) continue;
        crashed += 1;
        await checkAfterCrash(path, told, `statement ${statement}`);
      }
    };
    await Promise.all([tryPoints(0), tryPoints(1)]);
    // the scenario is not the same to the statement each time: its last points may come too late
    assert.ok(crashed >= POINTS / 2, `${crashed} crashes`);
  });
});

async function checkAfterCrash(path: string, told: { wakes: string[]; runs: string[] }, at: string): Promise<void> {
  const store = createSqliteStore(path);
  const kind = { name: "after the crash", create: () => store, reopen: async () => store };
  const { runs } = engine(kind, { agent: async ({ message }) => ({ response: message }) });
  // the client that heard nothing tries again
  const again = await runs.start(request({ message: "m1" }), { idempotency: idempotency() });
  if (told.runs[0] !== undefined) assert.deepEqual([again.runId, again.replayed], [told.runs[0], true], at);
  await runs.heartbeat();
  await until(() => runs.stats().queued + runs.stats().running === 0, "the end of all runs");
  const messages: string[] = [];
  const { runs: list } = await runs.list({ limit: 100 });
  for (const { id } of list) {
    const events = await allEvents(runs, id);
    assert.equal(events.filter(isTerminal).length, 1, at);
    assert.ok(isTerminal(events.at(-1)!), at);
    assert.deepEqual(
      events.map((event) => event.id),
      events.map((_, index) => index + 1),
      at,
    );
    messages.push((await runs.get(id)).message);
  }
  for (const id of told.runs)
    assert.ok(
      list.some((run) => run.id === id),
      at,
    );
  assert.equal(messages.filter((message) => message.endsWith("m1")).length, 1, at);
  for (const text of told.wakes) {
    assert.equal(messages.filter((message) => message.includes(`System event: ${text}`)).length, 1, `${at}: ${text}`);
  }
  await runs.close();
}
