import assert from "node:assert/strict";
import { generateKeyPairSync, verify } from "node:crypto";
import { Webhook } from "standardwebhooks";
import { parseConfig } from "#src/render/config/config.js";
import { createEndpoints, createSigner, receiversOfEnd } from "#src/service/hooks/webhooks/endpoints.js";

const SECRET = `whsec_${"a".repeat(40)}`;

const endpoints = (webhooks: unknown) =>
  createEndpoints(parseConfig({ channels: { web: { webhooks } } }, "test").channels.web.webhooks);

describe("endpoints of webhooks", () => {
  it("reach public addresses by TLS, others only in their networks, and those alone without TLS", () => {
    const [tls, plain] = endpoints({
      tls: { url: "https://a.example/x", secrets: SECRET, allow_networks: ["10.1.0.0/16", "fd00::/8"] },
      plain: { url: "http://a.example/x", secrets: SECRET, allow_networks: ["10.1.2.3"] },
    });
    const allowed = (ip: string) => [tls!.isAllowed(ip), plain!.isAllowed(ip)];
    assert.deepEqual(allowed("93.184.215.14"), [true, false]);
    assert.deepEqual(allowed("10.1.2.3"), [true, true]);
    assert.deepEqual(allowed("10.1.2.4"), [true, false]);
    assert.deepEqual(allowed("fd12::1"), [true, false]);
    for (const ip of ["127.0.0.1", "10.2.0.1", "169.254.169.254", "::1", "::ffff:127.0.0.1", "fe80::1"]) {
      assert.deepEqual(allowed(ip), [false, false], ip);
    }
  });

  it("are told of the events they name; the target is the address, without a word of it", () => {
    const all = endpoints({
      every: { url: "https://a.example/x?key=secret", secrets: SECRET },
      failures: { url: "https://a.example/y", secrets: SECRET, events: ["run.failed"], session_prefix: "shop:" },
      asked: { url: "https://a.example/z", secrets: SECRET, events: ["run.failed"], on_request: true },
    });
    const failed = receiversOfEnd(all, "failed");
    assert.deepEqual(
      failed.map(({ endpoint, sessionPrefix }) => [endpoint, sessionPrefix]),
      [
        ["every", ""],
        ["failures", "shop:"],
        ["asked", "comfy:asked:"],
      ],
    );
    assert.deepEqual(
      receiversOfEnd(all, "succeeded").map(({ endpoint }) => endpoint),
      ["every"],
    );
    assert.notEqual(failed[0]!.target, failed[1]!.target);
    assert.match(failed[0]!.target, /^[0-9a-f]{32}$/);
  });
});

const BODY = '{"type":"run.succeeded","text":"ü"}';
const secretOf = (text: string) => `whsec_${Buffer.from(text).toString("base64")}`;
const [OLD, NEW] = [secretOf("the first secret, 24 bytes"), secretOf("the second one, 24 bytes")];

describe("createSigner", () => {
  const seconds = Math.floor(Date.now() / 1000);
  const headers = (signature: string) => ({
    "webhook-id": "r1_succeeded",
    "webhook-timestamp": String(seconds),
    "webhook-signature": signature,
  });

  it("signs with each secret, as the package standardwebhooks verifies", () => {
    const signature = createSigner([OLD, NEW])("r1_succeeded", seconds, BODY);
    for (const secret of [OLD, NEW]) {
      assert.deepEqual(new Webhook(secret).verify(BODY, headers(signature)), JSON.parse(BODY));
    }
    assert.equal(signature.split(" ")[0], new Webhook(OLD).sign("r1_succeeded", new Date(seconds * 1000), BODY));
    const other = new Webhook(secretOf("a third secret of 24 bytes"));
    assert.throws(() => other.verify(BODY, headers(signature)));
    assert.throws(() => new Webhook(OLD).verify(`${BODY} `, headers(signature)));
  });

  it("signs with an ed25519 key, given as a seed or with its public key", () => {
    const { publicKey, privateKey } = generateKeyPairSync("ed25519");
    const { d, x } = privateKey.export({ format: "jwk" });
    const seed = Buffer.from(d!, "base64url");
    for (const bytes of [seed, Buffer.concat([seed, Buffer.from(x!, "base64url")])]) {
      const signature = createSigner([`whsk_${bytes.toString("base64")}`])("r1_failed", seconds, BODY);
      const [version, base64] = signature.split(",") as [string, string];
      assert.equal(version, "v1a");
      const isValid = (text: string) => verify(null, Buffer.from(text), publicKey, Buffer.from(base64, "base64"));
      assert.ok(isValid(`r1_failed.${seconds}.${BODY}`));
      assert.ok(!isValid(`r1_failed.${seconds + 1}.${BODY}`));
    }
  });
});
