import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:http";
import { setTimeout as sleep } from "node:timers/promises";
import { Webhook } from "standardwebhooks";
import { seededRandom } from "../seeded-random.mjs";

/** The lease of a delivery whose front end was killed, and the attempts after it. */
const PATIENCE_MS = 240_000;

/** Receiver of webhooks that breaks off, refuses and acknowledges without an answer, by chance. */
export class Receiver {
  /** Number of receptions of each webhook-id. @type {Map<string, number>} */
  received = new Map();
  /** @type {Set<string>} */
  #acknowledged = new Set();
  #server;
  #failure = "";

  /** @param {{ secret: string, seed: number }} options */
  constructor({ secret, seed }) {
    const below = seededRandom(seed);
    const webhook = new Webhook(secret);
    this.#server = createServer(async (req, res) => {
      try {
        const chunks = [];
        for await (const chunk of req) chunks.push(chunk);
        const id = String(req.headers["webhook-id"]);
        const { type, data } = /** @type {{ type: string, data: { run_id: string, status: string } }} */ (
          webhook.verify(Buffer.concat(chunks), /** @type {Record<string, string>} */ (req.headers))
        );
        assert.equal(id, `${data.run_id}_${data.status}`);
        assert.equal(type, `run.${data.status}`);
        this.received.set(id, (this.received.get(id) ?? 0) + 1);
        // twice, or the last ones would come in minutes
        const fault = (this.received.get(id) ?? 0) <= 2 ? below(8) : -1;
        if (fault === 0) return req.socket.destroy();
        if (fault === 1) return res.writeHead(500).end();
        this.#acknowledged.add(id);
        // the sender never hears of it, and comes again
        if (fault === 2) return req.socket.destroy();
        res.writeHead(204).end();
      } catch (error) {
        // a sender that was killed sends half a body, which no signature covers
        if (req.complete) this.#failure ||= String(error);
        res.destroy();
      }
    });
  }

  /** Listens on loopback; returns the address. */
  async listen() {
    this.#server.listen(0, "127.0.0.1");
    await once(this.#server, "listening");
    return `http://127.0.0.1:${/** @type {import("node:net").AddressInfo} */ (this.#server.address()).port}/`;
  }

  /** Waits until all of these were acknowledged, and checks that there were no others. @param {string[]} ids */
  async check(ids) {
    for (const end = Date.now() + PATIENCE_MS; ; await sleep(100)) {
      const missing = ids.filter((id) => !this.#acknowledged.has(id));
      if (missing.length === 0) break;
      assert.ok(Date.now() < end, `webhooks that never came: ${missing.slice(0, 5)}, ${missing.length} in all`);
    }
    assert.equal(this.#failure, "", "a webhook that was signed wrongly");
    const expected = new Set(ids);
    assert.deepEqual(
      [...this.received.keys()].filter((id) => !expected.has(id)),
      [],
      "webhooks of ends that never were",
    );
    return [...this.received.values()].reduce((sum, count) => sum + count, 0);
  }

  close() {
    this.#server.close();
    this.#server.closeAllConnections();
  }
}
