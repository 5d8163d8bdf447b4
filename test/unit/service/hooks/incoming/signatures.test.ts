import assert from "node:assert/strict";
import { Webhook } from "standardwebhooks";
import type { SignatureScheme } from "#src/render/config/incoming.js";
import { type Headers, SignatureFault, signatureCheck } from "#src/service/hooks/incoming/signatures.js";
import { SIGN } from "../../../../helpers/hooks/sign.js";

const NOW = 1_700_000_000;

interface Vector {
  readonly scheme: SignatureScheme;
  readonly secret: string;
  readonly time: number;
  readonly headers: Headers;
  readonly body: string;
}

/** From the senders' manuals; Stripe's from `generateTestHeaderString` of stripe 18. */
const VECTORS: Record<string, Vector> = {
  "the Standard Webhooks specification": {
    scheme: "standard-webhooks",
    secret: "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
    time: 1614265330,
    headers: {
      "webhook-id": "msg_p5jXN8AQM9LWM0D4loKWxJek",
      "webhook-timestamp": "1614265330",
      "webhook-signature": "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
    },
    body: '{"test": 2432232314}',
  },
  "GitHub's manual": {
    scheme: "github",
    secret: "It's a Secret to Everybody",
    time: NOW,
    headers: {
      "x-hub-signature-256": "sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17",
    },
    body: "Hello, World!",
  },
  "Stripe's library": {
    scheme: "stripe",
    secret: "whsec_test_secret_of_32_characters",
    time: NOW,
    headers: {
      "stripe-signature": "t=1700000000,v1=0ed43663aaf92ff96ffe237c77394fa5ae43fe70af1bc4731cf077862ec26d10",
    },
    body: '{"id":"evt_1PgafmB7WZ01zgkW6dKueIc5","object":"event","type":"payment_intent.succeeded"}',
  },
  "Slack's manual": {
    scheme: "slack",
    secret: "8f742231b10e8888abcd99yyyzzz85a5",
    time: 1531420618,
    headers: {
      "x-slack-request-timestamp": "1531420618",
      "x-slack-signature": "v0=a2114d57b48eac39b9ad189dd8316235a7b4a8d21a10bd27519666489c69b503",
    },
    body: "token=xyzz0WbapA4vBCDEFasx0q6G&team_id=T1DC2JH3J&team_domain=testteamnow&channel_id=G8PSS9T3V&channel_name=foobar&user_id=U2CERLKJA&user_name=roadrunner&command=%2Fwebhook-collect&text=&response_url=https%3A%2F%2Fhooks.slack.com%2Fcommands%2FT1DC2JH3J%2F397700885554%2F96rGlfmibIGlgcZRskXaIFfN&trigger_id=398738663015.47445629121.803a0bc887a14d10d2c447fce8b6703c",
  },
};

function holds(
  { scheme, secret, time, headers, body }: Vector,
  more: { secrets?: string[]; nowSeconds?: number } = {},
) {
  const { secrets = [secret], nowSeconds = time } = more;
  return signatureCheck({ scheme, secrets, replaySeconds: 300 })(headers, nowSeconds * 1000).holdsFor(
    Buffer.from(body),
  );
}

const OTHER = "MDEyMzQ1Njc4OWFiY2RlZg==";

describe("signatures of senders", () => {
  for (const [what, vector] of Object.entries(VECTORS)) {
    it(`hold for the example of ${what}, and for nothing else`, () => {
      assert.equal(holds(vector), true);
      assert.equal(holds({ ...vector, body: `${vector.body} ` }), false);
      assert.equal(holds(vector, { secrets: [OTHER] }), false);
      assert.equal(holds(vector, { secrets: [OTHER, vector.secret] }), true);
      for (const [name, value] of Object.entries(vector.headers) as [string, string][]) {
        const changed = { ...vector, headers: { ...vector.headers, [name]: `${value.slice(0, -3)}000` } };
        assert.notEqual(
          outcome(() => holds(changed)),
          true,
          name,
        );
        const missing = { ...vector, headers: { ...vector.headers, [name]: undefined } };
        assert.throws(
          () => holds(missing),
          (error) => error instanceof SignatureFault && error.message.includes(name),
        );
      }
    });
  }

  it("agree with the package standardwebhooks, in both directions", () => {
    for (let i = 0; i < 50; i++) {
      const secret = `whsec_${Buffer.alloc(24 + (i % 41), i + 1).toString("base64")}`;
      const body = JSON.stringify({ text: "ü\u2028".repeat(i), i });
      const id = `msg_${i}`;
      // the package checks against its own clock
      const time = Math.floor(Date.now() / 1000);
      const theirs = new Webhook(secret);
      const headers = {
        "webhook-id": id,
        "webhook-timestamp": String(time),
        "webhook-signature": theirs.sign(id, new Date(time * 1000), body),
      };
      assert.equal(holds({ scheme: "standard-webhooks", secret, time, headers, body }), true);
      assert.deepEqual(theirs.verify(body, SIGN["standard-webhooks"]({ secret, body, time, id })), JSON.parse(body));
    }
  });

  it("standard-webhooks: the names of Svix as well, all three or none", () => {
    const vector = VECTORS["the Standard Webhooks specification"]!;
    const standard = Object.entries(vector.headers);
    const svix = standard.map(([name, value]) => [name.replace("webhook", "svix"), value] as const);
    assert.equal(holds({ ...vector, headers: Object.fromEntries(svix) }), true);
    // both: those of the standard count
    const wrong = svix.map(([name]) => [name, "x"] as const);
    assert.equal(holds({ ...vector, headers: Object.fromEntries([...standard, ...wrong]) }), true);
    for (let mask = 1; mask < 7; mask++) {
      const mixed = standard.map((entry, i) => ((mask >> i) & 1 ? svix[i]! : entry));
      const fault = outcome(() => holds({ ...vector, headers: Object.fromEntries(mixed) }));
      assert.match(String(fault), /the header webhook-(id|timestamp|signature) is missing/);
    }
    for (const [name] of svix) {
      const rest = Object.fromEntries(svix.filter((entry) => entry[0] !== name));
      assert.match(
        String(outcome(() => holds({ ...vector, headers: rest }))),
        new RegExp(`the header ${name} is missing`),
      );
    }
  });

  it("hold where one of several is right, of schemes that send several", () => {
    const [standard, stripe] = [VECTORS["the Standard Webhooks specification"]!, VECTORS["Stripe's library"]!];
    const good = String(standard.headers["webhook-signature"]);
    for (const signature of [`v1,AAAA ${good}`, `v1a,AAAA ${good} v2,x`]) {
      assert.equal(holds({ ...standard, headers: { ...standard.headers, "webhook-signature": signature } }), true);
    }
    const header = String(stripe.headers["stripe-signature"]);
    assert.equal(holds({ ...stripe, headers: { "stripe-signature": `${header},v1=00,v0=11` } }), true);
    assert.equal(holds({ ...stripe, headers: { "stripe-signature": header.replace("v1=", "v0=") } }), false);
    const many = Array.from({ length: 17 }, () => good).join(" ");
    assert.throws(
      () => holds({ ...standard, headers: { ...standard.headers, "webhook-signature": many } }),
      /more than 16/,
    );
  });

  for (const scheme of ["standard-webhooks", "stripe", "slack"] as const) {
    it(`${scheme}: five minutes from the clock at most, before and after`, () => {
      const secret = OTHER;
      const vector = {
        scheme,
        secret,
        time: NOW,
        body: "{}",
        headers: SIGN[scheme]({ secret, body: "{}", time: NOW }),
      };
      for (const nowSeconds of [NOW - 300, NOW + 300]) assert.equal(holds(vector, { nowSeconds }), true);
      assert.throws(() => holds(vector, { nowSeconds: NOW + 301 }), /too old/);
      assert.throws(() => holds(vector, { nowSeconds: NOW - 301 }), /in the future/);
      for (const time of ["", "soon", "1e9", "-1", "1".repeat(13), "1700000000 "]) {
        const headers = Object.fromEntries(
          Object.entries(vector.headers).map(([name, value]) => [name, value.replace(/^(t=|)1700000000/, `$1${time}`)]),
        );
        assert.throws(() => holds({ ...vector, headers }), SignatureFault, time);
      }
    });
  }

  it("a time in milliseconds is refused as no time in seconds", () => {
    const headers = SIGN["standard-webhooks"]({ secret: OTHER, body: "{}", time: NOW * 1000 });
    const vector = { scheme: "standard-webhooks", secret: OTHER, time: NOW, body: "{}", headers } as const;
    assert.throws(() => holds(vector), /^SignatureFault: the timestamp is not a time in whole seconds$/);
  });

  it("stripe: a time that is there twice is refused", () => {
    const vector = VECTORS["Stripe's library"]!;
    const header = `${vector.headers["stripe-signature"]},t=1700000000`;
    assert.throws(() => holds({ ...vector, headers: { "stripe-signature": header } }), SignatureFault);
  });
});

/** The result, or the fault that was thrown. */
function outcome(act: () => boolean): unknown {
  try {
    return act();
  } catch (error) {
    assert.ok(error instanceof SignatureFault);
    return error;
  }
}
