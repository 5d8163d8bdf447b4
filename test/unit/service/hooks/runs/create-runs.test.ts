import assert from "node:assert/strict";
import { LatentkitError } from "latentkit";
import type { Agent } from "#src/service/agent/agent.js";
import { rejectsAs } from "../../../../helpers/errors.js";
import { turns } from "../../../../helpers/hooks/fake-clock.js";
import {
  allEvents,
  assertEnded,
  closeNow,
  engine,
  isTerminal,
  refusesHook,
  request,
  scriptedAgent,
  startRun,
  until,
} from "../../../../helpers/hooks/hook-runs.js";
import { describeStores } from "../../../../helpers/hooks/hook-stores.js";

const UUID_V4 = /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;
const never = () => new Promise<never>(() => undefined);

/** Throws at whatever is asked of it, `instanceof` included. */
const hostileProxy = (): object => {
  const trap = (): never => {
    throw new Error("trap");
  };
  return new Proxy({}, { get: trap, getPrototypeOf: trap, has: trap, ownKeys: trap });
};

describeStores({ title: "run engine", isLocal: true }, (kind) => {
  describe("a run", () => {
    it("is stored before start resolves, and runs later", async () => {
      const { runs, script, store, clock } = engine(kind);
      const started = await runs.start(request({ name: "CI", message: "draw a fox" }));
      assert.match(started.runId, UUID_V4);
      assert.deepEqual(started, {
        runId: started.runId,
        sessionKey: "hook:a",
        createdAt: clock.now(),
        createdMark: runs.now(),
        replayed: false,
      });
      assert.equal((await store.getRun(started.runId))?.state, "queued");
      const call = await script.call(started.runId);
      assert.deepEqual(call.run, { id: started.runId, sessionKey: "hook:a", message: "draw a fox", name: "CI" });
      assert.equal((await runs.get(started.runId)).state, "running");
      assert.equal(await runs.outcome(started.runId), null);
      call.context.emit("delta", { delta: "fo" });
      call.context.emit("tool_start", { name: "paint" });
      call.succeed("fox");
      assert.deepEqual(await assertEnded(runs, started.runId, "succeeded"), { response: "fox" });
      const events = await allEvents(runs, started.runId);
      assert.deepEqual(
        events.map(({ event, data }) => [event, JSON.parse(data)]),
        [
          ["status", { message: "The run has started.", state: "running" }],
          ["delta", { delta: "fo" }],
          ["tool_start", { name: "paint" }],
          ["done", { response: "fox" }],
        ],
      );
      assert.equal((await runs.outcome(started.runId))?.event, "done");
      await runs.close();
    });

    it("with a time-out of range is refused", async () => {
      const { runs } = engine(kind);
      for (const timeoutSeconds of [0, -1, 3601, Number.NaN, Number.POSITIVE_INFINITY]) {
        await refusesHook(runs.start(request({ timeoutSeconds })), "invalid_request");
      }
      await runs.close();
    });

    it("is not found by another id", async () => {
      const { runs } = engine(kind);
      await refusesHook(runs.get("nope"), "run_not_found");
      await refusesHook(runs.outcome("nope"), "run_not_found");
      await refusesHook(runs.cancel("nope"), "run_not_found");
      await refusesHook(runs.read("nope", 0), "run_not_found");
      await refusesHook(runs.file("nope", "a"), "run_not_found");
      await refusesHook(runs.follow("nope", 0).next(), "run_not_found");
      await runs.close();
    });
  });

  describe("agents", () => {
    const failing: Record<string, [Agent, code: string, message: RegExp]> = {
      throws: [
        () => {
          throw new Error("out of paint");
        },
        "agent_failed",
        /^out of paint$/,
      ],
      rejects: [
        async () => {
          throw new Error("out of paint");
        },
        "agent_failed",
        /^out of paint$/,
      ],
      "throws a text": [
        () => {
          throw "out of paint";
        },
        "agent_failed",
        /^out of paint$/,
      ],
      "throws undefined": [
        () => {
          throw undefined;
        },
        "agent_failed",
        /^undefined$/,
      ],
      "throws what cannot be shown": [
        () => {
          throw Object.create(null);
        },
        "agent_failed",
        /cannot be shown/,
      ],
      "throws an error whose message is no text": [
        () => {
          throw Object.defineProperty(new Error(), "message", { value: { toString: () => "thrown by an object" } });
        },
        "agent_failed",
        /^thrown by an object$/,
      ],
      "throws an error whose message is a number": [
        () => {
          throw Object.assign(new Error(), { message: 7 });
        },
        "agent_failed",
        /^7$/,
      ],
      "throws an error whose message throws": [
        () => {
          throw Object.defineProperty(new Error(), "message", {
            get(): never {
              throw new Error("trap");
            },
          });
        },
        "agent_failed",
        /cannot be shown/,
      ],
      "throws a proxy that throws at every question": [
        () => {
          throw hostileProxy();
        },
        "agent_failed",
        /cannot be shown/,
      ],
      "throws an object whose toString throws": [
        () => {
          throw {
            toString(): never {
              throw hostileProxy();
            },
          };
        },
        "agent_failed",
        /cannot be shown/,
      ],
      "throws a symbol": [
        () => {
          throw Symbol("paint");
        },
        "agent_failed",
        /^Symbol\(paint\)$/,
      ],
      "throws null": [
        () => {
          throw null;
        },
        "agent_failed",
        /^null$/,
      ],
      "throws ten million characters": [
        () => {
          throw { toString: () => "x".repeat(10_000_000) };
        },
        "agent_failed",
        /^x{2000}…$/,
      ],
      "throws an error of the library with a code of its own": [
        () => {
          throw Object.assign(new LatentkitError("graph.cycle", "odd"), { code: { toString: () => "x" } });
        },
        "agent_failed",
        /^odd$/,
      ],
      "throws an error of the library": [
        () => {
          throw new LatentkitError("graph.cycle", "The graph has a cycle.");
        },
        "graph.cycle",
        /cycle/,
      ],
      "throws a lone surrogate": [
        () => {
          throw new Error("\ud800!");
        },
        "agent_failed",
        /^\ufffd!$/,
      ],
      "answers nothing": [(async () => undefined) as unknown as Agent, "invalid_response", /response/],
      "answers an object": [
        (async () => ({ response: { a: 1n } })) as unknown as Agent,
        "invalid_response",
        /response/,
      ],
      "answers with a trap": [
        (async () => ({
          get response() {
            throw new Error("trap");
          },
        })) as unknown as Agent,
        "agent_failed",
        /trap/,
      ],
    };
    for (const [what, [agent, code, message]] of Object.entries(failing)) {
      it(`agent ${what}: the run fails, the slot is free`, async () => {
        const { runs } = engine(kind, { agent });
        const first = await startRun(runs);
        const second = await startRun(runs);
        for (const id of [first, second]) {
          const data = await assertEnded(runs, id, "failed");
          assert.equal(data.code, code);
          assert.match(String(data.error), message);
          assert.deepEqual((await runs.get(id)).error, data);
        }
        await runs.close();
      });
    }

    it("agent ignores its signal: timed out, the slot is free after a grace", async () => {
      const { runs, clock } = engine(kind, { agent: never });
      const first = await startRun(runs, { timeoutSeconds: 5 });
      const second = await startRun(runs);
      await until(async () => (await runs.get(first)).state === "running", "running");
      await clock.advance(4_999);
      assert.equal((await runs.get(first)).state, "running");
      await clock.advance(1);
      const data = await assertEnded(runs, first, "timed_out");
      assert.deepEqual(data, { error: "The run took longer than 5 s.", code: "timed_out" });
      assert.equal((await runs.get(second)).state, "queued");
      await clock.advance(1000);
      await until(async () => (await runs.get(second)).state === "running", "the second run");
      await closeNow(runs, clock);
    });

    it("agent obeys its signal: the slot is free at once", async () => {
      const reasons: unknown[] = [];
      const agent: Agent = (_run, { signal }) =>
        new Promise((_resolve, reject) => {
          signal.addEventListener("abort", () => {
            reasons.push(signal.reason);
            reject(signal.reason);
          });
        });
      const { runs, clock } = engine(kind, { agent });
      const first = await startRun(runs);
      const second = await startRun(runs);
      await until(async () => (await runs.get(first)).state === "running", "running");
      await clock.advance(600_000);
      await assertEnded(runs, first, "timed_out");
      assert.equal((reasons[0] as Error).name, "AbortError");
      await until(async () => (await runs.get(second)).state === "running", "the second run");
      await closeNow(runs, clock);
    });

    it("agent emits after the end: ignored", async () => {
      const { runs, script } = engine(kind);
      const id = await startRun(runs);
      const { context, succeed } = await script.call(id);
      succeed("ok");
      await assertEnded(runs, id, "succeeded");
      const before = await allEvents(runs, id);
      context.emit("delta", { delta: "late" });
      context.emit("done", { response: "forged" });
      assert.equal(context.addFile({ path: "/out/late.png" }).name, "late.png");
      await turns();
      assert.deepEqual(await allEvents(runs, id), before);
      await refusesHook(runs.file(id, "late.png"), "not_found");
      await runs.close();
    });

    it("agent emits a reserved or malformed name: TypeError, nothing stored", async () => {
      const { runs, script } = engine(kind);
      const id = await startRun(runs);
      const { context, succeed } = await script.call(id);
      const names = ["replay_meta", "done", "error", "aborted", "", "a b", "x\ndata: y", "1a", "a".repeat(65), "ü"];
      for (const name of [...names, undefined, null, 5, {}] as string[]) {
        assert.throws(() => context.emit(name, {}), TypeError, String(name));
      }
      context.emit("custom.event-1", {});
      succeed("ok");
      await assertEnded(runs, id, "succeeded");
      assert.deepEqual(
        (await allEvents(runs, id)).map(({ event }) => event),
        ["status", "custom.event-1", "done"],
      );
      await runs.close();
    });

    it("agent emits hostile data: one line of JSON each", async () => {
      const { runs, script } = engine(kind);
      const id = await startRun(runs);
      const { context, succeed } = await script.call(id);
      const circular: Record<string, unknown> = {};
      circular.self = circular;
      const values = [
        circular,
        1n,
        "\ud800",
        undefined,
        "\n\ndata: x\nevent: done",
        {
          toJSON() {
            throw new Error("no");
          },
        },
      ];
      for (const value of values) context.emit("delta", value);
      context.emit("delta", { delta: "x".repeat(10 * 1024 * 1024) });
      succeed("ok");
      await assertEnded(runs, id, "succeeded");
      const events = await allEvents(runs, id);
      assert.equal(events.length, 9);
      for (const { data } of events) {
        assert.doesNotMatch(data, /[\r\n]/);
        JSON.parse(data);
      }
      await runs.close();
    });

    it("agent returns more than a run may store: the run fails", async () => {
      const { runs, script } = engine(kind, { limits: { run_bytes: 1000 } });
      const id = await startRun(runs);
      (await script.call(id)).succeed("x".repeat(1001));
      assert.equal((await assertEnded(runs, id, "failed")).code, "response_too_large");
      await runs.close();
    });
  });

  describe("events", () => {
    it("are trimmed at run_events: ids contiguous, the terminal one last", async () => {
      const { runs, script } = engine(kind, { limits: { run_events: 100 } });
      const id = await startRun(runs);
      const { context, succeed } = await script.call(id);
      for (let i = 0; i < 50_000; i++) context.emit("delta", { delta: String(i) });
      succeed("ok");
      await assertEnded(runs, id, "succeeded");
      const events = await allEvents(runs, id);
      assert.equal(events.length, 100);
      assert.deepEqual(JSON.parse(events.at(-2)!.data), { delta: "49999" });
      const row = await runs.get(id);
      assert.deepEqual([row.oldestEventId, row.lastEventId], [50_002 - 99, 50_002]);
      assert.equal((await runs.read(id, 0)).truncated, true);
      await runs.close();
    });

    it("are trimmed at run_bytes", async () => {
      const { runs, script } = engine(kind, { limits: { run_bytes: 10_000 } });
      const id = await startRun(runs);
      const { context, succeed } = await script.call(id);
      for (let i = 0; i < 100; i++) {
        context.emit("delta", { delta: "x".repeat(988) });
        if (i % 7 === 0) await turns(2);
      }
      succeed("ok");
      await assertEnded(runs, id, "succeeded");
      const events = await allEvents(runs, id);
      assert.equal(events.length, 10);
      assert.equal((await runs.get(id)).lastEventId, 102);
      await runs.close();
    });

    it("reach a reader live, in bounded slices, to the end", async () => {
      const { runs, script } = engine(kind);
      const id = await startRun(runs);
      const { context, succeed } = await script.call(id);
      const seen: number[] = [];
      const reading = (async () => {
        for await (const slice of runs.follow(id, -1)) {
          assert.ok(slice.events.length <= 256);
          seen.push(...slice.events.map((event) => event.id));
        }
      })();
      for (let i = 0; i < 1000; i++) {
        context.emit("delta", { delta: String(i) });
        if (i % 100 === 0) await turns(1);
      }
      succeed("ok");
      await reading;
      assert.deepEqual(
        seen,
        Array.from({ length: 1002 }, (_, i) => i + 1),
      );
      assert.equal(runs.stats().followed, 0);
      await runs.close();
    });

    it("reach readers that reconnect after every event: no gap, no repeat", async () => {
      const { runs, script } = engine(kind);
      const id = await startRun(runs);
      const { context, succeed } = await script.call(id);
      const seen: number[] = [];
      const reading = (async () => {
        for (let cursor = 0, isOver = false; !isOver; ) {
          for await (const slice of runs.follow(id, cursor)) {
            cursor = slice.events[0]?.id ?? cursor;
            if (slice.events[0] !== undefined) seen.push(cursor);
            isOver = slice.end && slice.events.length <= 1;
            break;
          }
        }
      })();
      for (let i = 0; i < 50; i++) {
        context.emit("delta", { delta: String(i) });
        await turns(i % 3);
      }
      succeed("ok");
      await reading;
      assert.deepEqual(
        seen,
        Array.from({ length: 52 }, (_, i) => i + 1),
      );
      await runs.close();
    });

    it("end the stream of a reader that begins in the terminal event's tick", async () => {
      for (let delay = 0; delay < 12; delay++) {
        const { runs, script, store } = engine(kind);
        const id = await startRun(runs);
        const { succeed } = await script.call(id);
        succeed("ok");
        for (let i = 0; i < delay; i++) await Promise.resolve();
        const events: string[] = [];
        for await (const slice of runs.follow(id, 0)) events.push(...slice.events.map(({ event }) => event));
        assert.deepEqual(events, ["status", "done"]);
        await runs.close();
        await store.close();
      }
    });

    it("report a trimmed head to a slow reader", async () => {
      const { runs, script } = engine(kind, { limits: { run_events: 300 } });
      const id = await startRun(runs);
      const { context, succeed } = await script.call(id);
      const reader = runs.follow(id, 0);
      assert.equal((await reader.next()).value?.truncated, false);
      for (let i = 0; i < 1000; i++) context.emit("delta", { delta: String(i) });
      succeed("ok");
      await assertEnded(runs, id, "succeeded");
      const slice = (await reader.next()).value!;
      assert.equal(slice.truncated, true);
      assert.equal(slice.events[0]?.id, slice.oldestEventId);
      await reader.return();
      await runs.close();
    });

    it("stop when a reader's signal aborts, and leave no listener", async () => {
      const { runs, script, clock } = engine(kind);
      const id = await startRun(runs);
      await script.call(id);
      for (let i = 0; i < 200; i++) {
        const abort = new AbortController();
        const reader = runs.follow(id, 0, abort.signal);
        await reader.next();
        const waiting = reader.next();
        if (i % 2 === 0) await turns(1);
        abort.abort();
        await rejectsAs(abort.signal, waiting);
      }
      assert.equal(runs.stats().followed, 0);
      const aborted = AbortSignal.abort();
      await rejectsAs(aborted, runs.follow(id, 0, aborted).next());
      await closeNow(runs, clock);
    });

    it("of a cancelled run end all live readers", async () => {
      const { runs, script, clock } = engine(kind);
      const id = await startRun(runs);
      const { context } = await script.call(id);
      context.emit("delta", { delta: "half " });
      context.emit("delta", { delta: "a fox" });
      const reading = (async () => {
        const events = [];
        for await (const slice of runs.follow(id, 0)) events.push(...slice.events);
        return events;
      })();
      await turns(2);
      await runs.cancel(id);
      const events = await reading;
      assert.deepEqual(JSON.parse(events.at(-1)!.data), { text: "half a fox" });
      await closeNow(runs, clock);
    });
  });

  describe("files", () => {
    it("have unique, safe names", async () => {
      const { runs, script } = engine(kind);
      const id = await startRun(runs);
      const { context, succeed } = await script.call(id);
      assert.deepEqual(context.addFile({ path: "/out/fox.png", contentType: "image/png" }), {
        name: "fox.png",
        url: `/api/runs/${id}/files/fox.png`,
      });
      assert.equal(context.addFile({ path: "/out/fox.png" }).name, "fox.png");
      assert.equal(context.addFile({ path: "/out/b/fox.png" }).name, "fox-2.png");
      assert.equal(
        context.addFile({ path: "/out/x", name: "ein Füchs%.png" }).url,
        `/api/runs/${id}/files/ein%20F%C3%BCchs%25.png`,
      );
      for (const name of ["", ".", "..", "a/b", "a\\b", "a\u0000", "\ud800", "x".repeat(256)]) {
        assert.throws(() => context.addFile({ path: "/out/x", name }), TypeError, name);
      }
      succeed("ok");
      await assertEnded(runs, id, "succeeded");
      assert.deepEqual(await runs.file(id, "fox.png"), {
        name: "fox.png",
        path: "/out/fox.png",
        contentType: "image/png",
      });
      assert.equal((await runs.file(id, "fox-2.png")).path, "/out/b/fox.png");
      for (const name of ["x", "..", "../fox.png", "__proto__"]) await refusesHook(runs.file(id, name), "not_found");
      await runs.close();
    });

    it("are limited in number", async () => {
      const { runs, script } = engine(kind, { limits: { run_events: 3 } });
      const id = await startRun(runs);
      const { context, succeed } = await script.call(id);
      for (let i = 0; i < 3; i++) context.addFile({ path: `/out/${i}.png` });
      assert.throws(() => context.addFile({ path: "/out/3.png" }), RangeError);
      succeed("ok");
      await assertEnded(runs, id, "succeeded");
      await runs.close();
    });
  });

  describe("queue", () => {
    it("runs one per session in order of arrival, with 50 parallel starts", async () => {
      const order: string[] = [];
      let [running, most] = [0, 0];
      const agent: Agent = async ({ message }) => {
        running += 1;
        most = Math.max(most, running);
        order.push(message);
        await turns(1);
        running -= 1;
        return { response: message };
      };
      const { runs } = engine(kind, { agent });
      const ids = await Promise.all(Array.from({ length: 50 }, (_, i) => startRun(runs, { message: String(i) })));
      for (const id of ids) await assertEnded(runs, id, "succeeded");
      assert.equal(most, 1);
      assert.deepEqual(
        order,
        Array.from({ length: 50 }, (_, i) => String(i)),
      );
      await runs.close();
    });

    it("runs four in total, one per session, oldest first", async () => {
      const { runs, script } = engine(kind);
      const start = (session: string) => startRun(runs, { sessionKey: session });
      const ids = [];
      for (const session of ["a", "a", "b", "c", "d", "e", "b"]) ids.push(await start(session));
      await until(() => script.calls.length === 4, "four calls");
      await turns();
      assert.deepEqual(
        script.calls.map(({ run }) => run.id),
        [ids[0], ids[2], ids[3], ids[4]],
      );
      assert.deepEqual({ ...runs.stats(), waitedMs: 0 }, { queued: 3, running: 4, followed: 0, waitedMs: 0 });
      script.calls[2]!.succeed("c");
      await until(() => script.calls.length === 5, "the next call");
      assert.equal(script.calls[4]!.run.id, ids[5]);
      script.calls[0]!.succeed("a");
      await until(() => script.calls.length === 6, "the next call");
      assert.equal(script.calls[5]!.run.id, ids[1]);
      for (const call of script.calls) call.succeed("ok");
      await (await script.call(ids[6]!)).succeed("ok");
      for (const id of ids) await assertEnded(runs, id!, "succeeded");
      await runs.close();
    });

    it("refuses the 101st queued run of a session and stores nothing", async () => {
      const { runs, script, clock } = engine(kind);
      const first = await startRun(runs);
      await script.call(first);
      for (let i = 0; i < 100; i++) await startRun(runs);
      const refusal = await refusesHook(runs.start(request()), "queue_full");
      assert.equal(refusal.status, 429);
      assert.ok(Number(refusal.headers["Retry-After"]) > 0);
      assert.equal((await runs.list({ limit: 1000 })).runs.length, 101);
      assert.ok(await startRun(runs, { sessionKey: "hook:b" }));
      await closeNow(runs, clock);
    });

    it("counts uncommitted starts: 120 at once", async () => {
      const { runs, clock } = engine(kind);
      const all = await Promise.allSettled(Array.from({ length: 120 }, () => startRun(runs)));
      assert.equal(all.filter(({ status }) => status === "fulfilled").length, 101);
      await closeNow(runs, clock);
    });

    it("refuses beyond the total limit", async () => {
      const { runs, script, clock } = engine(kind, { limits: { queued: 3, running: 2 } });
      const sessions = Array.from({ length: 8 }, (_, i) => `hook:${i}`);
      const all = await Promise.allSettled(sessions.map((sessionKey) => startRun(runs, { sessionKey })));
      assert.equal(all.filter(({ status }) => status === "fulfilled").length, 5);
      await until(() => script.calls.length === 2, "two calls");
      await refusesHook(runs.start(request({ sessionKey: "hook:x" })), "queue_full");
      script.calls[0]!.succeed("ok");
      await until(() => script.calls.length === 3, "the next call");
      await startRun(runs, { sessionKey: "hook:x" });
      await closeNow(runs, clock);
    });

    it("queues nothing with limits of 0", async () => {
      const { runs, script, clock } = engine(kind, { limits: { queued: 0, queued_per_session: 0, running: 2 } });
      const first = await startRun(runs);
      await refusesHook(runs.start(request()), "queue_full");
      await startRun(runs, { sessionKey: "hook:b" });
      await refusesHook(runs.start(request({ sessionKey: "hook:c" })), "queue_full");
      (await script.call(first)).succeed("ok");
      await assertEnded(runs, first, "succeeded");
      await turns();
      await startRun(runs, { sessionKey: "hook:c" });
      await closeNow(runs, clock);
    });

    it("expires a run that waited too long", async () => {
      const { runs, clock, script } = engine(kind, { limits: { run_seconds: 7200 } });
      const first = await startRun(runs);
      const second = await startRun(runs);
      await script.call(first);
      await clock.advance(3_599_000);
      assert.equal((await runs.get(second)).state, "queued");
      await clock.advance(1_000);
      const data = await assertEnded(runs, second, "expired");
      assert.deepEqual(data, { error: "The run waited in the queue for more than 3600 s.", code: "expired" });
      (await script.call(first)).succeed("ok");
      await assertEnded(runs, first, "succeeded");
      await turns();
      assert.equal(script.calls.length, 1);
      assert.deepEqual({ ...runs.stats(), waitedMs: 0 }, { queued: 0, running: 0, followed: 0, waitedMs: 0 });
      await runs.close();
    });
  });

  describe("cancel", () => {
    it("ends a queued, a running and a starting run, once", async () => {
      const { runs, script, clock } = engine(kind);
      const first = await startRun(runs);
      const second = await startRun(runs);
      const third = await startRun(runs, { sessionKey: "hook:b" });
      const starting = await runs.cancel(third);
      assert.equal(starting.state, "cancelled");
      const running = await script.call(first);
      assert.equal((await runs.cancel(second)).state, "cancelled");
      assert.equal((await runs.cancel(first)).state, "cancelled");
      assert.equal(running.context.signal.aborted, true);
      for (const id of [first, second, third]) {
        assert.deepEqual(await assertEnded(runs, id, "cancelled"), { text: null });
        const before = await runs.get(id);
        assert.deepEqual(await runs.cancel(id), before);
      }
      running.succeed("too late");
      await turns();
      assert.equal((await runs.get(first)).state, "cancelled");
      // a database on a network may be so slow that the third had begun when it was cancelled
      const others = script.calls.filter((call) => call !== running);
      if (kind.name !== "PostgreSQL") assert.deepEqual(others, []);
      for (const { run, context } of others) assert.deepEqual([run.id, context.signal.aborted], [third, true]);
      await closeNow(runs, clock);
    });

    it("leaves a finished run as it is", async () => {
      const { runs, script } = engine(kind);
      const id = await startRun(runs);
      (await script.call(id)).succeed("ok");
      await assertEnded(runs, id, "succeeded");
      const before = await runs.get(id);
      assert.deepEqual(await runs.cancel(id), before);
      await assertEnded(runs, id, "succeeded");
      await runs.close();
    });

    it("races completion many times: one terminal event each time", async () => {
      const settle = new Map<string, () => void>();
      const agent: Agent = ({ id }) => new Promise((resolve) => settle.set(id, () => resolve({ response: "ok" })));
      const { runs } = engine(kind, { agent });
      const states = new Map<string, number>();
      const rounds = kind.name === "PostgreSQL" ? 200 : 1000;
      for (let round = 0; round < rounds; round++) {
        const id = await startRun(runs);
        // the end comes before, during and after the cancel
        const isLate = round % 3 === 0;
        if (!isLate) {
          while (!settle.has(id)) await turns(1);
          settle.get(id)!();
          for (let i = 0; i < round % 17; i++) await Promise.resolve();
        }
        const [row] = await Promise.all([
          runs.cancel(id),
          isLate ? turns(1).then(() => settle.get(id)?.()) : undefined,
        ]);
        assert.ok(row.state === "cancelled" || row.state === "succeeded", row.state);
        states.set(row.state, (states.get(row.state) ?? 0) + 1);
        const events = await allEvents(runs, id);
        assert.equal(events.filter(isTerminal).length, 1);
        assert.ok(isTerminal(events.at(-1)!));
        assert.equal((await runs.get(id)).state, row.state);
        settle.get(id)?.();
      }
      assert.ok(
        (states.get("cancelled") ?? 0) > 50 && (states.get("succeeded") ?? 0) > 50,
        JSON.stringify([...states]),
      );
      await runs.close();
    });
  });

  describe("list", () => {
    it("pages through all runs, newest first", async () => {
      const { runs, clock } = engine(kind, { agent: never });
      const ids = [];
      for (let i = 0; i < 7; i++) ids.push(await startRun(runs));
      const seen: string[] = [];
      let cursor: string | undefined;
      do {
        const page = await runs.list({ cursor, limit: 3 });
        seen.push(...page.runs.map(({ id }) => id));
        cursor = page.nextCursor ?? undefined;
      } while (cursor !== undefined);
      assert.deepEqual(seen, ids.reverse());
      for (const bad of ["", "x", "-1", "1.5", "0", "99999999999999999999", "1 OR 1=1"]) {
        await refusesHook(runs.list({ cursor: bad, limit: 3 }), "invalid_request");
      }
      await closeNow(runs, clock);
    });
  });

  it("starts agents one by one, even if they block in the same tick", async () => {
    const script = scriptedAgent();
    const { runs, clock } = engine(kind, { agent: script.agent, limits: { running_per_session: 2 } });
    const ids = await Promise.all([startRun(runs), startRun(runs), startRun(runs)]);
    await until(() => script.calls.length === 2, "two calls");
    assert.deepEqual(
      script.calls.map(({ run }) => run.id),
      ids.slice(0, 2),
    );
    await closeNow(runs, clock);
  });
});
