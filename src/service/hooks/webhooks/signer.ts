import { createHmac, createPrivateKey, sign } from "node:crypto";
import { signingKey } from "../../../render/config/webhooks.js";

/** Returns the header `webhook-signature` of a message, with a signature for each secret. */
export type Signer = (id: string, seconds: number, body: string) => string;

/** DER of an ed25519 private key (RFC 8410), up to its seed. */
const PKCS8 = Buffer.from("302e020100300506032b657004220420", "hex");

/** Signs by Standard Webhooks: `v1` for `whsec_` secrets, `v1a` for `whsk_` keys. */
export function createSigner(secrets: readonly string[]): Signer {
  const signers = secrets.map(signatureBy);
  return (id, seconds, body) => {
    const signed = Buffer.from(`${id}.${seconds}.${body}`);
    return signers.map((signature) => signature(signed)).join(" ");
  };
}

function signatureBy(secret: string): (signed: Buffer) => string {
  const { kind, bytes } = signingKey(secret)!;
  if (kind === "hmac") return (signed) => `v1,${createHmac("sha256", bytes).update(signed).digest("base64")}`;
  const key = createPrivateKey({ key: Buffer.concat([PKCS8, bytes]), format: "der", type: "pkcs8" });
  return (signed) => `v1a,${sign(null, signed, key).toString("base64")}`;
}
