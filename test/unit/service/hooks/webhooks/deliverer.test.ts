import assert from "node:assert/strict";
import type { RequestListener } from "node:http";
import { Webhook } from "standardwebhooks";
import type { HookConfigInput } from "#src/service/hooks/hook-config.js";
import type { Store } from "#src/service/hooks/store/store.js";
import { backOffMs, retryAfterMs } from "#src/service/hooks/webhooks/deliverer.js";
import { FakeClock } from "../../../../helpers/hooks/fake-clock.js";
import { serviceStarter, until } from "../../../../helpers/hooks/hook-service.js";
import { describeStores } from "../../../../helpers/hooks/hook-stores.js";
import { Receiver } from "../../../../helpers/hooks/webhook-receiver.js";

describeStores({ title: "webhooks", isLocal: true }, (kind) => {
  const SECRET = `whsec_${Buffer.from("a secret of at least 24 bytes").toString("base64")}`;
  const MINUTE = 60_000;
  const HOUR = 60 * MINUTE;

  const status = (code: number, headers = {}): RequestListener => {
    return (_req, res) => void res.writeHead(code, headers).end();
  };

  const startService = serviceStarter();
  const receivers: Receiver[] = [];
  afterEach(() => {
    for (const receiver of receivers.splice(0)) receiver.close();
  });

  async function service(webhooks: (url: string) => NonNullable<HookConfigInput["webhooks"]>, store?: Store) {
    const clock = new FakeClock(Date.now());
    const receiver = await Receiver.listen();
    receiver.clock = clock;
    receivers.push(receiver);
    const config: HookConfigInput = {
      webhooks: webhooks(receiver.url),
      public_url: "https://render.example.com/",
      hooks_allow_request_session_key: true,
    };
    const started = await startService({ clock, config, store: store ?? kind.create() });
    const deliveries = async (query = "") => {
      const response = await started.get(`/api/webhooks/deliveries${query}`);
      return ((await response.json()) as { deliveries: DeliveryItem[] }).deliveries;
    };
    /** Moves the clock on in steps; a request that is sent meanwhile takes real time. */
    const advance = async (ms: number, step = 10_000) => {
      for (let left = ms; left > 0; left -= step) {
        await clock.advance(Math.min(step, left));
        await settled();
      }
    };
    const settled = async () => {
      let before = -1;
      // nothing has arrived and no attempt was added for some turns
      for (let quiet = 0; quiet < 2; ) {
        await new Promise((resolve) => setTimeout(resolve, 1));
        quiet = receiver.received.length === before ? quiet + 1 : 0;
        before = receiver.received.length;
      }
    };
    return { ...started, clock, receiver, deliveries, advance };
  }

  interface DeliveryItem {
    readonly id: number;
    readonly webhook: string;
    readonly webhook_id: string;
    readonly state: string;
    readonly attempts: { at: string; status: number | null; error: string | null }[];
  }

  const shop =
    (extra = {}) =>
    (url: string) => ({
      shop: { url, secrets: SECRET, allow_networks: ["127.0.0.1"], ...extra },
    });

  it("are posted at the end of a run, signed, with addresses that open its stream and files", async () => {
    const { receiver, start, url, deliveries } = await service(shop());
    const { run_id } = await start("a lake", { name: "CI", tags: ["spring"] });
    await until(() => receiver.received.length === 1, "the webhook");
    const { headers, body } = receiver.received[0]!;
    const event = new Webhook(SECRET).verify(body, headers as Record<string, string>) as {
      type: string;
      data: Record<string, string>;
    };
    assert.equal(headers["webhook-id"], `${run_id}_succeeded`);
    assert.equal(headers["content-type"], "application/json");
    const { stream_url, ...data } = event.data;
    assert.equal(event.type, "run.succeeded");
    assert.deepEqual(data, {
      run_id,
      status: "succeeded",
      session_key: "hook:ingress",
      name: "CI",
      error_code: null,
      tags: ["spring"],
      status_url: `https://render.example.com/api/runs/${run_id}`,
      files: [],
      file_count: 0,
    });
    const stream = await fetch(stream_url!.replace("https://render.example.com", url));
    assert.equal(stream.status, 200);
    assert.match(await stream.text(), /event: done/);
    await until(async () => (await deliveries())[0]?.state === "delivered", "the log");
    assert.equal((await deliveries())[0]!.attempts[0]!.status, 204);
  });

  it("are sent for the events and sessions that are configured", async () => {
    const { receiver, start, post, deliveries } = await service((url) => ({
      ...shop({ events: ["run.cancelled"], session_prefix: "shop:" })(url),
    }));
    await start("fine", { sessionKey: "shop:1" });
    for (const sessionKey of ["shop:2", "other"]) {
      const { run_id } = await start("hold", { sessionKey });
      await post(`/api/runs/${run_id}/cancel`, {});
    }
    await until(() => receiver.received.length === 1, "the webhook");
    assert.equal(JSON.parse(receiver.received[0]!.body).data.session_key, "shop:2");
    assert.equal((await deliveries()).length, 1);
  });

  it("end for an endpoint that is gone, until one that is sent again succeeds", async () => {
    const { receiver, start, post, deliveries, advance } = await service(shop());
    receiver.respond = status(410);
    await start("one");
    await until(async () => (await deliveries())[0]?.state === "dead", "the end");
    const { run_id } = await start("two");
    await until(async () => (await deliveries(`?run_id=${run_id}`)).length === 1, "the second run");
    await advance(HOUR, 10 * MINUTE);
    assert.equal(receiver.received.length, 1);
    assert.ok((await deliveries()).every(({ state }) => state === "dead"));
    receiver.respond = status(200);
    await post(`/api/webhooks/deliveries/${(await deliveries())[0]!.id}/again`, {});
    await until(() => receiver.received.length === 2, "the delivery");
    await until(async () => (await deliveries())[0]!.state === "delivered", "the log");
    await start("three");
    await until(() => receiver.received.length === 3, "the third run");
  });

  it("of a slow receiver hold up neither runs nor other webhooks", async () => {
    const other = await Receiver.listen();
    receivers.push(other);
    const { receiver, start, hooks } = await service((url) => ({
      ...shop()(url),
      log: { url: other.url, secrets: SECRET, allow_networks: ["127.0.0.0/8"] },
    }));
    receiver.respond = () => undefined;
    const runs = [];
    for (let i = 0; i < 20; i++) runs.push((await start(`run ${i}`)).run_id);
    await until(() => other.received.length === 20, "the other webhook");
    assert.equal(receiver.received.length, 4);
    for (const id of runs) assert.equal((await hooks.runs.get(id)).state, "succeeded");
  });

  it("never reach an address that is not allowed, whatever its name resolves to", async () => {
    const { receiver, start, deliveries } = await service((url) => ({
      named: { url: url.replace("127.0.0.1", "localhost"), secrets: SECRET, allow_networks: ["10.0.0.0/8"] },
      secure: { url: url.replace("http://127.0.0.1", "https://localhost"), secrets: SECRET },
    }));
    await start("a lake");
    const tried = async () => (await deliveries()).filter(({ attempts }) => attempts.length > 0);
    await until(async () => (await tried()).length === 2, "the attempts");
    const errors = (await tried()).flatMap(({ attempts }) => attempts.map(({ error }) => error));
    assert.deepEqual(errors, ["the address is not allowed", "the address is not allowed"]);
    assert.equal(receiver.received.length, 0);
  });

  it("are listed by pages, and refuse what is no delivery", async () => {
    const { start, get, post, deliveries } = await service(shop());
    for (const message of ["one", "two", "three"]) await start(message);
    await until(async () => (await deliveries("?state=delivered")).length === 3, "the deliveries");
    const page = (await (await get("/api/webhooks/deliveries?limit=2")).json()) as { next_cursor: string };
    const rest = await deliveries(`?limit=2&cursor=${page.next_cursor}`);
    assert.equal(rest.length, 1);
    assert.deepEqual(await deliveries("?webhook=other"), []);
    const one = (await (await get(`/api/webhooks/deliveries/${rest[0]!.id}`)).json()) as { delivery: DeliveryItem };
    assert.deepEqual(one.delivery, rest[0]);
    for (const id of ["0", "99", "x", "-1", "1e3", "9".repeat(40)]) {
      assert.equal((await get(`/api/webhooks/deliveries/${id}`)).status, 404);
      assert.equal((await post(`/api/webhooks/deliveries/${id}/again`, {})).status, 404);
    }
    assert.equal((await get("/api/webhooks/deliveries?state=lost")).status, 400);
    assert.equal((await get("/api/webhooks/deliveries?cursor=x")).status, 400);
    assert.equal((await get("/api/webhooks/deliveries", { authorization: "Bearer no" })).status, 401);
  });

  // a store that several processes share goes by its own clock
  if (kind.name === "PostgreSQL") return;

  it("arrive after an hour in which the receiver is down, each once, with all attempts in the log", async () => {
    const { receiver, start, get, deliveries, advance } = await service(shop());
    receiver.respond = (req) => req.socket.destroy();
    const ids: string[] = [];
    for (const message of ["one", "two", "three"]) ids.push(`${(await start(message)).run_id}_succeeded`);
    await advance(HOUR, MINUTE);
    const failures = receiver.received.length;
    assert.ok(failures >= 15 && failures <= 30, `${failures} requests in an hour`);
    const waiting = await deliveries("?state=pending");
    assert.equal(waiting.length, 3);
    assert.match(await (await get("/metrics")).text(), /^latentkit_webhooks_pending 3$/m);
    assert.ok(waiting.every(({ attempts }) => attempts.every(({ error }) => error?.includes("ECONNRESET"))));
    receiver.respond = status(200);
    await advance(3 * HOUR, 10 * MINUTE);
    assert.deepEqual(receiver.ids.slice(failures).sort(), ids.sort());
    const done = await deliveries("?state=delivered");
    assert.equal(done.length, 3);
    for (const { attempts } of done) assert.deepEqual([attempts.at(-1)?.status, attempts.length >= 6], [200, true]);
    assert.match(await (await get("/metrics")).text(), /^latentkit_webhooks_pending 0$/m);
  });

  it("wait longer and longer, are dead after 24 hours, and can be sent again @long", async () => {
    const { receiver, start, post, deliveries, advance, log } = await service(shop());
    receiver.respond = status(503);
    const { run_id } = await start("a lake");
    await advance(25 * HOUR, 10 * MINUTE);
    const [dead] = await deliveries();
    assert.equal(dead!.state, "dead");
    const times = receiver.received.map(({ at }) => at);
    assert.ok(times.length >= 9 && times.length <= 16, `${times.length} requests`);
    assert.ok(times.at(-1)! - times[0]! > 23 * HOUR);
    assert.match(log(), /"msg":"webhook dead"/);
    receiver.respond = status(200);
    const response = await post(`/api/webhooks/deliveries/${dead!.id}/again`, {});
    assert.equal(response.status, 200);
    await until(async () => (await deliveries())[0]!.state === "delivered", "the delivery");
    assert.equal(receiver.ids.at(-1), `${run_id}_succeeded`);
  });

  it("are tried again after redirects, which are not followed, and any other status", async () => {
    const { receiver, start, deliveries, advance } = await service(shop());
    const other = await Receiver.listen();
    receivers.push(other);
    const answers = [302, 307, 400, 404, 500, 503].map((code) => status(code, { location: other.url }));
    receiver.respond = (req, res) => (answers.shift() ?? status(200))(req, res);
    await start("a lake");
    await advance(2 * HOUR, MINUTE);
    const [delivery] = await deliveries();
    assert.deepEqual(
      delivery!.attempts.map((attempt) => attempt.status),
      [302, 307, 400, 404, 500, 503, 200],
    );
    assert.equal(delivery!.state, "delivered");
    assert.equal(other.received.length, 0);
  });

  it("wait as long as a busy receiver asks for", async () => {
    const { receiver, start, advance } = await service(shop());
    receiver.respond = status(429, { "retry-after": "1200" });
    await start("a lake");
    await advance(19 * MINUTE, 10_000);
    assert.equal(receiver.received.length, 1);
    await advance(2 * MINUTE, 10_000);
    assert.equal(receiver.received.length, 2);
  });

  it("are sent once by the next process where one stopped before", async () => {
    const store = kind.create();
    const first = await service(shop(), store);
    first.receiver.respond = status(500);
    const { run_id } = await first.start("a lake");
    await until(async () => (await first.deliveries())[0]?.attempts.length === 1, "the first attempt");
    const closed = first.hooks.close(0);
    await first.clock.advance(10_000);
    await closed;
    const next = await service(shop(), await kind.reopen(store));
    await next.advance(MINUTE);
    assert.deepEqual(next.receiver.ids, [`${run_id}_succeeded`]);
  });
});

describe("back-off of webhooks", () => {
  const HOUR = 3600_000;

  it("begins with 5 s, triples, and stays at 6 h", () => {
    const waits: number[] = [];
    for (let ageMs = 0; ageMs < 24 * HOUR; ageMs += waits.at(-1)!) {
      waits.push(backOffMs({ ageMs, before: waits.length }, () => 0));
    }
    assert.deepEqual(waits.slice(0, 4), [5000, 15_000, 45_000, 135_000]);
    assert.equal(Math.max(...waits), 6 * HOUR);
    assert.ok(waits.length >= 10 && waits.length <= 14, `${waits.length} attempts in a day`);
  });

  it("varies by a quarter at most, and never falls below zero", () => {
    const wait = (ageMs: number, before: number, random = 0) => backOffMs({ ageMs, before }, () => random);
    assert.equal(wait(0, 0, 1), 3750);
    assert.equal(wait(-1000, 3), 5000);
  });

  it("begins anew for a delivery that is sent again, and is short after an outage of the service", () => {
    const wait = (ageMs: number, before: number) => backOffMs({ ageMs, before }, () => 0);
    assert.deepEqual([wait(0, 20), wait(5000, 20)], [5000, 15_000]);
    assert.deepEqual([wait(5 * HOUR, 0), wait(5 * HOUR, 1)], [5000, 15_000]);
  });

  it("reads Retry-After of a busy receiver, in seconds or as a date, bounded", () => {
    const now = Date.parse("Wed, 01 Jan 2025 00:00:00 GMT");
    assert.equal(retryAfterMs(429, "120", now), 120_000);
    assert.equal(retryAfterMs(503, "Wed, 01 Jan 2025 00:10:00 GMT", now), 600_000);
    assert.equal(retryAfterMs(503, "Tue, 31 Dec 2024 00:00:00 GMT", now), 0);
    assert.equal(retryAfterMs(503, "9".repeat(20), now), 6 * HOUR);
    for (const header of [undefined, "soon", "-5", "9".repeat(1000)]) assert.equal(retryAfterMs(429, header, now), 0);
    assert.equal(retryAfterMs(500, "120", now), 0);
  });
});
