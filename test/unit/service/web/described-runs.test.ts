import assert from "node:assert/strict";
import { createMemoryStore } from "latentkit/hooks";
import { createServer } from "latentkit/service";
import { createServiceWithRoutes } from "#src/service/hooks/service.js";
import { webRoutes } from "#src/service/web/routes.js";
import { TOKEN } from "../../../helpers/page/open-page.js";

interface Runs {
  runs: { title: string }[];
  next_cursor: string | null;
  from: number;
  to: number;
}

describe("described runs", () => {
  const limits = { queued: 5000, queued_per_session: 5000, running: 64, running_per_session: 64, retention_runs: 5000 };
  const serve = async (
    work: (list: (query: string) => Promise<Runs>, store: ReturnType<typeof createMemoryStore>) => Promise<void>,
  ) => {
    const store = createMemoryStore();
    const hooks = createServiceWithRoutes(
      { agent: async () => ({ response: "" }), store, config: { hooks_token: TOKEN, limits } },
      (context) => webRoutes(context, { models: [] }),
    );
    const server = createServer({ hooks, port: 0 });
    try {
      const start = (message: string) => hooks.runs.start({ origin: "agent", message, sessionKey: "hook:a" });
      await start("a needle");
      for (let i = 0; i < 1300; i++) await start("hay");
      const { url } = await server.listen();
      await work(async (query) => {
        const response = await fetch(`${url}/api/page/runs?${query}`, {
          headers: { Authorization: `Bearer ${TOKEN}` },
        });
        return (await response.json()) as Runs;
      }, store);
    } finally {
      await server.close(0);
    }
  };

  it("a search looks through 600 runs at most, and its cursor goes on behind them", () =>
    serve(async (list) => {
      const pages: Runs[] = [];
      for (let cursor: string | null = ""; cursor !== null; cursor = pages.at(-1)!.next_cursor) {
        pages.push(await list(`search=needle&cursor=${cursor}`));
      }
      assert.deepEqual(
        pages.map(({ from, to, runs }) => [from, to, runs.map(({ title }) => title)]),
        [
          [1301, 702, []],
          [701, 102, []],
          [101, 0, ["a needle"]],
        ],
      );
    }));

  it("reads the message of a run once, however often it is listed", () =>
    serve(async (list, store) => {
      let reads = 0;
      const { getRun } = store;
      store.getRun = (id) => {
        reads += 1;
        return getRun(id);
      };
      await list("limit=50");
      const first = reads;
      for (let i = 0; i < 5; i++) await list("limit=50");
      assert.ok(reads - first < 5, `${first} reads, then ${reads - first}`);
      assert.ok(first >= 50);
    }));
});
