import { createHmac } from "node:crypto";
import type { SignatureScheme } from "#src/render/config/incoming.js";

const hex = (key: string | Buffer, text: string) => createHmac("sha256", key).update(text).digest("hex");

interface Signing {
  readonly secret: string;
  readonly body: string;
  /** Seconds since 1970. */
  readonly time: number;
  readonly id?: string;
}

/** The headers that senders of a scheme add, as their manuals say. */
export const SIGN: Record<SignatureScheme, (signing: Signing) => Record<string, string>> = {
  "standard-webhooks": ({ secret, body, time, id = "msg_1" }) => {
    const key = Buffer.from(secret.replace("whsec_", ""), "base64");
    const signature = createHmac("sha256", key).update(`${id}.${time}.${body}`).digest("base64");
    return { "webhook-id": id, "webhook-timestamp": String(time), "webhook-signature": `v1,${signature}` };
  },
  github: ({ secret, body, id = "72d3162e-cc78-11e3-81ab-4c9367dc0958" }) => ({
    "x-github-delivery": id,
    "x-github-event": "issues",
    "x-hub-signature-256": `sha256=${hex(secret, body)}`,
  }),
  stripe: ({ secret, body, time }) => ({ "stripe-signature": `t=${time},v1=${hex(secret, `${time}.${body}`)}` }),
  slack: ({ secret, body, time }) => ({
    "x-slack-request-timestamp": String(time),
    "x-slack-signature": `v0=${hex(secret, `v0:${time}:${body}`)}`,
  }),
};
