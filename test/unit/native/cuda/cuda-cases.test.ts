import assert from "node:assert/strict";
import { CASES, CASES_OF, differs } from "#src/native/cuda/cuda-cases.js";
import { HOST_SIDE, type HostMemory, type Side } from "#src/native/cuda/cuda-sides.js";

type Operation = keyof typeof CASES_OF;
type OfTensors = keyof (typeof HOST_SIDE)["ops"];

const OPERATIONS = Object.keys(CASES_OF) as Operation[];

/** A side with another bit in the last value of an operation that only devices have. */
const FAULTS: Readonly<Record<Exclude<Operation, OfTensors>, Partial<Side<HostMemory>>>> = {
  philoxWords: { words: (...given) => spoilt(HOST_SIDE.words(...given)) },
  fill: { filled: (...given) => spoilt(HOST_SIDE.filled(...given)) },
  copy: {
    copy(to, ...given) {
      HOST_SIDE.copy(to, ...given);
      spoilt(to);
    },
  },
  resizedBlend: {
    resizedBlend(out, ...given) {
      HOST_SIDE.resizedBlend(out, ...given);
      spoilt(out);
    },
  },
  filterPng: { encode: async (...given) => spoilt(await HOST_SIDE.encode(...given)) },
};

function spoilt<Values extends HostMemory | Uint32Array>(values: Values): Values {
  const bytes = new Uint8Array(values.buffer, values.byteOffset, values.byteLength);
  bytes[bytes.length - values.BYTES_PER_ELEMENT]! ^= 1;
  return values;
}

const isOfTensors = (operation: Operation): operation is OfTensors & Operation => !Object.hasOwn(FAULTS, operation);

/** The native core, but for one operation, whose last value has another bit. */
function faulty(wrong: OfTensors): Side<HostMemory> {
  const call = HOST_SIDE.ops[wrong] as (...given: unknown[]) => unknown;
  const ops = Object.create(HOST_SIDE.ops, {
    [wrong]: {
      value(out: HostMemory, ...rest: unknown[]) {
        const answer = call(out, ...rest);
        if (typeof answer === "number") return answer + 2 ** -20;
        spoilt(out);
        return answer;
      },
    },
  }) as Side<HostMemory>["ops"];
  return { ...HOST_SIDE, ops };
}

async function failures(side: Side<HostMemory>): Promise<string[]> {
  const names: string[] = [];
  for (const { name, run } of CASES) if (differs(await run(HOST_SIDE), await run(side)) !== undefined) names.push(name);
  return names;
}

describe("cases of the trial", () => {
  it("agree with themselves", async () => {
    assert.deepEqual(await failures(HOST_SIDE), []);
  });

  for (const operation of OPERATIONS) {
    it(`find one wrong bit of ${operation}`, async () => {
      const side = isOfTensors(operation) ? faulty(operation) : { ...HOST_SIDE, ...FAULTS[operation] };
      const found = await failures(side);
      assert.ok(found.length > 0 && found.every((name) => name.includes(operation)), found.join("; "));
    });
  }

  it("find one wrong bit of noise that is drawn as it is mixed", async () => {
    const injectDrawn: Side<HostMemory>["injectDrawn"] = (out, ...given) => {
      HOST_SIDE.injectDrawn(out, ...given);
      new Uint8Array(out.buffer)[0]! ^= 1;
    };
    const found = await failures({ ...HOST_SIDE, injectDrawn });
    assert.ok(found.length > 0 && found.every((name) => name.endsWith(", drawn")), found.join("; "));
  });

  it("compare bits, but not those of a NaN", () => {
    const f32 = (...values: number[]) => Float32Array.from(values);
    assert.equal(differs(f32(1, Number.NaN), f32(1, Number.NaN)), undefined);
    assert.match(differs(f32(1, 0), f32(1, -0))!, /^value 1 is -0 instead of 0$/);
    assert.match(differs(f32(1, Number.NaN), f32(1, 0))!, /value 1 is 0 instead of NaN/);
    assert.match(differs(f32(1), f32(1, 2))!, /2 values instead of 1/);
    assert.match(differs(1n, 2n)!, /2 instead of 1/);
    assert.equal(differs(Number.NaN, Number.NaN), undefined);
    assert.equal(typeof differs(1, f32(1)), "string");
  });
});
