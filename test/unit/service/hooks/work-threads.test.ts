import assert from "node:assert/strict";
import { systemClock } from "#src/service/hooks/clock.js";
import { HookError } from "#src/service/hooks/hook-error.js";
import { WorkThreads, type WorkThreadsOptions } from "#src/service/hooks/work-threads.js";
import { FakeClock } from "../../../helpers/hooks/fake-clock.js";
import { until } from "../../../helpers/hooks/hook-service.js";
import type { TestDone as Done, TestWork } from "../../../helpers/hooks/work-program.js";

const never = new AbortController().signal;

describe("WorkThreads", () => {
  const open: WorkThreads<TestWork, Done>[] = [];
  const create = (options: Partial<WorkThreadsOptions> = {}) => {
    const threads = new WorkThreads<TestWork, Done>({
      program: new URL("../../../helpers/hooks/work-program.js", import.meta.url),
      mostThreads: 1,
      mostWaiting: 10,
      mostMs: 60_000,
      refusal: "too much",
      clock: systemClock,
      ...options,
    });
    open.push(threads);
    return threads;
  };
  afterEach(() => {
    for (const threads of open.splice(0)) threads.close();
  });
  const run = (threads: WorkThreads<TestWork, Done>, work: TestWork["what"] | TestWork, signal = never) =>
    threads.run(async () => ({ value: typeof work === "string" ? { what: work } : work }), signal);
  const failure = async (work: Promise<unknown>) => {
    const error = await work.then(
      () => assert.fail("it did not fail"),
      (error: unknown) => error,
    );
    assert.ok(error instanceof HookError, String(error));
    return error;
  };

  it("do work in its order, as much at once as there are threads", async () => {
    for (const mostThreads of [1, 3]) {
      const threads = create({ mostThreads });
      const running = new SharedArrayBuffer(8);
      const order: number[] = [];
      const all = Array.from({ length: 8 }, async (_, at) => {
        await run(threads, { what: "hold", running, crowd: mostThreads });
        order.push(at);
      });
      await Promise.all(all);
      assert.equal(new Int32Array(running)[1], mostThreads);
      if (mostThreads === 1) assert.deepEqual(order, [0, 1, 2, 3, 4, 5, 6, 7]);
    }
  });

  it("move memory there and back, and need no thread for what is known before", async () => {
    const threads = create();
    const bytes = new Uint8Array(1000).fill(21);
    const { bytes: doubled } = await threads.run(
      async () => ({ value: { what: "double", bytes }, moved: [bytes.buffer] }),
      never,
    );
    assert.equal(bytes.length, 0);
    assert.deepEqual(doubled, new Uint8Array(1000).fill(42));
    assert.deepEqual(await threads.run(async () => ({ done: { threadId: -1 } }), never), { threadId: -1 });
  });

  it("refuse what waits beyond the bound, and do what is asked later", async () => {
    const threads = create({ mostWaiting: 2 });
    const first = Array.from({ length: 3 }, () => run(threads, "hold"));
    assert.equal((await failure(run(threads, "answer"))).status, 429);
    await Promise.all(first);
    await run(threads, "answer");
  });

  it("drop what waits when its signal aborts, and end a thread that is at it", async () => {
    const threads = create();
    const { threadId } = await run(threads, "answer");
    const [spinning, waiting] = [new AbortController(), new AbortController()];
    const gone = new Error("gone");
    let isPrepared = false;
    const running = new SharedArrayBuffer(8);
    const spun = run(threads, { what: "spin", running }, spinning.signal);
    const dropped = threads.run(async () => {
      isPrepared = true;
      return { value: { what: "answer" } };
    }, waiting.signal);
    const last = run(threads, "answer");
    waiting.abort(gone);
    await assert.rejects(dropped, gone);
    await until(() => new Int32Array(running)[0] === 1, "the thread spins");
    spinning.abort(gone);
    await assert.rejects(spun, gone);
    assert.notEqual((await last).threadId, threadId);
    assert.equal(isPrepared, false);
    await assert.rejects(run(threads, "answer", AbortSignal.abort(gone)), gone);
    // whether what prepares it fails by that, or never ends
    for (const wait of [1, Number.POSITIVE_INFINITY]) {
      const preparing = new AbortController();
      const stuck = threads.run(
        (signal) =>
          new Promise((_, reject) => {
            signal.addEventListener("abort", () => wait === 1 && reject(new Error("of a stream")));
            preparing.abort(gone);
          }),
        preparing.signal,
      );
      await assert.rejects(stuck, gone);
      await run(threads, "answer");
    }
  });

  it("refuse what takes too long, too much memory or too deep a stack, and go on", async () => {
    const clock = new FakeClock();
    const threads = create({ clock, resourceLimits: { maxOldGenerationSizeMb: 32 } });
    const spun = failure(run(threads, "spin"));
    await until(() => clock.timers === 1);
    await clock.advance(60_000);
    for (const refused of [await spun, await failure(run(threads, "fill")), await failure(run(threads, "overflow"))]) {
      assert.deepEqual([refused.status, refused.message], [400, "too much"]);
    }
    await run(threads, "answer");
  });

  it("fail where their program does, with its cause, and go on", async () => {
    const threads = create();
    const { kind, cause } = await failure(run(threads, "throw"));
    assert.deepEqual([kind, (cause as Error).message], ["internal", "a fault of the program"]);
    assert.equal((await failure(run(threads, "exit"))).kind, "internal");
    await run(threads, "answer");
  });

  it("end when they have had no work for a while, and start again", async () => {
    const clock = new FakeClock();
    const threads = create({ clock });
    const { threadId } = await run(threads, "answer");
    assert.equal((await run(threads, "answer")).threadId, threadId);
    await clock.advance(31_000);
    const { threadId: next } = await run(threads, "answer");
    assert.notEqual(next, threadId);
    // or where they keep much memory
    assert.equal((await run(threads, "hoard")).threadId, next);
    assert.notEqual((await run(threads, "answer")).threadId, next);
  });

  it("end with what runs and what waits when they are closed", async () => {
    const threads = create();
    const all = ["spin", "answer", "answer"].map((what) => failure(run(threads, what as "answer")));
    await new Promise((resolve) => setTimeout(resolve, 20));
    threads.close();
    for (const error of await Promise.all(all)) assert.equal(error.kind, "shutting_down");
    assert.equal((await failure(run(threads, "answer"))).kind, "shutting_down");
  });
});
