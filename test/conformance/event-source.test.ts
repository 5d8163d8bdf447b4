import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { chromium } from "playwright-core";
import type { Agent } from "#src/service/agent/agent.js";
import { serviceStarter } from "../helpers/hooks/hook-service.js";
import { upTo } from "../helpers/http/sse-reader.js";
import { skip } from "../helpers/skip.js";

const CHROMIUM = "/usr/bin/chromium";
const FLAGS = [
  "--no-sandbox",
  "--disable-gpu",
  "--disable-quic",
  "--no-first-run",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-sync",
];

interface Seen {
  events: { name: string; id: string; data: unknown }[];
  state: number;
}

const startService = serviceStarter();

describe("EventSource in Chromium", () => {
  before(function () {
    if (!existsSync(CHROMIUM)) skip(this, `${CHROMIUM} is not installed`);
  });

  it("reads a run by stream_url, resumes after a lost connection, stops at the end", async () => {
    let lose = () => {};
    const lost = new Promise<void>((resolve) => {
      lose = resolve;
    });
    const agent: Agent = async (_run, { emit }) => {
      for (let i = 0; i < 20; i++) {
        emit("delta", { delta: i });
        if (i === 10) await lost;
      }
      return { response: "seen" };
    };
    const { url, start, listening } = await startService({ agent });
    const browser = await chromium.launch({ executablePath: CHROMIUM, args: FLAGS });
    try {
      const page = await browser.newPage();
      await page.goto(`${url}/health`);
      let cut = false;
      const { stream_url } = await start("x");
      listening.server.on("request", ({ url: path }) => {
        if (cut || !path?.startsWith("/api/stream")) return;
        cut = true;
        setTimeout(() => {
          listening.server.closeAllConnections();
          lose();
        }, 500);
      });
      const seen = await page.evaluate(watch, stream_url);
      const numbered = seen.events.filter(({ name }) => name !== "replay_meta");
      assert.deepEqual(
        numbered.map(({ id }) => Number(id)),
        upTo(22),
      );
      assert.deepEqual(numbered.at(-1), { name: "done", id: "22", data: { response: "seen" } });
      assert.ok(seen.events.filter(({ name }) => name === "replay_meta").length >= 2, "it has reconnected");
      assert.equal(seen.state, 2, "204 has closed it");
    } finally {
      await browser.close();
    }
  });
});

/** Runs in the page: collects the events until the source is closed for good. */
async function watch(streamUrl: string): Promise<Seen> {
  const page = globalThis as unknown as {
    EventSource: new (url: string) => EventTarget & { readyState: number };
  };
  const source = new page.EventSource(streamUrl);
  const events: Seen["events"] = [];
  for (const name of ["replay_meta", "status", "delta", "done", "aborted"]) {
    source.addEventListener(name, (event) => {
      const { lastEventId, data } = event as Event & { lastEventId: string; data: string };
      events.push({ name, id: lastEventId, data: JSON.parse(data) as unknown });
    });
  }
  while (source.readyState !== 2) await new Promise((resolve) => setTimeout(resolve, 50));
  return { events, state: source.readyState };
}
