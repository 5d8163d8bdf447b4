import assert from "node:assert/strict";
import { generateKeyPairSync, verify } from "node:crypto";
import { Webhook } from "standardwebhooks";
import { createSigner } from "#src/service/hooks/webhooks/signer.js";

const BODY = '{"type":"run.succeeded","text":"ü"}';
const secretOf = (text: string) => `whsec_${Buffer.from(text).toString("base64")}`;
const [OLD, NEW] = [secretOf("the first secret, 24 bytes"), secretOf("the second one, 24 bytes")];

describe("createSigner", () => {
  const seconds = Math.floor(Date.now() / 1000);
  const headers = (signature: string) => ({
    ...{ "webhook-id": "r1_succeeded", "webhook-timestamp": String(seconds), "webhook-signature": signature },
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
