import assert from "node:assert/strict";
import { messageOf, toJsonLine } from "#src/service/hooks/runs/safe-json.js";

describe("toJsonLine", () => {
  it("writes JSON values on one line", () => {
    for (const value of [{ a: 1 }, [1, null], "x", 0, true, null, "\n\ndata: x\nevent: done", "\u2028"]) {
      assert.equal(toJsonLine(value), JSON.stringify(value));
      assert.doesNotMatch(toJsonLine(value), /[\r\n]/);
    }
  });

  it("writes BigInt as digits, cycles as [Circular], undefined as null", () => {
    assert.equal(toJsonLine({ seed: 2n ** 64n }), '{"seed":"18446744073709551616"}');
    const circular: Record<string, unknown> = { name: "a", list: [1n] };
    circular.self = circular;
    circular.deep = { up: circular };
    assert.equal(toJsonLine(circular), '{"name":"a","list":["1"],"self":"[Circular]","deep":{"up":"[Circular]"}}');
    const shared = { x: 1 };
    const twice = { a: shared, b: shared, self: {} };
    twice.self = twice;
    assert.equal(toJsonLine(twice), '{"a":{"x":1},"b":{"x":1},"self":"[Circular]"}');
    assert.equal(toJsonLine(undefined), "null");
    assert.equal(
      toJsonLine(() => 1),
      "null",
    );
  });

  it("escapes lone surrogates: the line is valid UTF-8", () => {
    assert.equal(toJsonLine("\ud800"), '"\\ud800"');
  });

  it("reports a value that cannot be written", () => {
    let deep: unknown = 0;
    for (let i = 0; i < 100_000; i++) deep = [deep];
    const hostile = [
      deep,
      {
        get x(): never {
          throw new Error("no");
        },
      },
      {
        toJSON(): never {
          throw "text";
        },
      },
      {
        toJSON(): never {
          throw new Proxy(
            {},
            {
              getPrototypeOf: () => {
                throw new Error("trap");
              },
            },
          );
        },
      },
      new Proxy(
        {},
        {
          ownKeys: () => {
            throw new Error("trap");
          },
        },
      ),
    ];
    for (const value of hostile) {
      assert.equal(typeof (JSON.parse(toJsonLine(value)) as { unserializable: unknown }).unserializable, "string");
    }
  });
});

describe("messageOf", () => {
  it("returns a bounded text for any thrown value, never throws", () => {
    assert.equal(messageOf(new Error("out of paint")), "out of paint");
    assert.equal(messageOf("text"), "text");
    assert.equal(messageOf(undefined), "undefined");
    assert.equal(messageOf(Object.create(null)), "an error that cannot be shown");
    assert.equal(messageOf(new Error("x".repeat(5000))).length, 2001);
    assert.equal(messageOf(new TypeError()), "TypeError");
  });
});
