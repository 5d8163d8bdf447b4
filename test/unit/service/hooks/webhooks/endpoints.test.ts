import assert from "node:assert/strict";
import { parseConfig } from "#src/render/config/config.js";
import { createEndpoints, receiversOfEnd } from "#src/service/hooks/webhooks/endpoints.js";

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
