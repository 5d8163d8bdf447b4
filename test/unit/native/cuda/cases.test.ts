import assert from "node:assert/strict";
import { CASES, CASES_OF, differs } from "#src/native/cuda/cases.js";
import { CPU_TRIAL_SIDE, type CpuMemory, type TrialSide } from "#src/native/cuda/trial-sides.js";

type Operation = keyof typeof CASES_OF;
type OfTensors = keyof (typeof CPU_TRIAL_SIDE)["ops"];

const OPERATIONS = Object.keys(CASES_OF) as Operation[];

/** A side with another bit in the last value of an operation that only devices have. */
const FAULTS: Readonly<Record<Exclude<Operation, OfTensors>, Partial<TrialSide<CpuMemory>>>> = {
  philoxWords: { words: (...operands) => spoilt(CPU_TRIAL_SIDE.words(...operands)) },
  fill: { filled: (...operands) => spoilt(CPU_TRIAL_SIDE.filled(...operands)) },
  copy: {
    copy(to, ...operands) {
      CPU_TRIAL_SIDE.copy(to, ...operands);
      spoilt(to);
    },
  },
  resizedBlend: {
    resizedBlend(out, ...operands) {
      CPU_TRIAL_SIDE.resizedBlend(out, ...operands);
      spoilt(out);
    },
  },
  filterPng: { encode: async (...operands) => spoilt(await CPU_TRIAL_SIDE.encode(...operands)) },
};

function spoilt<Values extends CpuMemory | Uint32Array>(values: Values): Values {
  const bytes = new Uint8Array(values.buffer, values.byteOffset, values.byteLength);
  bytes[bytes.length - values.BYTES_PER_ELEMENT]! ^= 1;
  return values;
}

const isOfTensors = (operation: Operation): operation is OfTensors & Operation => !Object.hasOwn(FAULTS, operation);

/** The native core, but for one operation, whose last value has another bit. */
function faulty(wrong: OfTensors): TrialSide<CpuMemory> {
  const call = CPU_TRIAL_SIDE.ops[wrong] as (...operands: unknown[]) => unknown;
  const ops = Object.create(CPU_TRIAL_SIDE.ops, {
    [wrong]: {
      value(out: CpuMemory, ...rest: unknown[]) {
        const result = call(out, ...rest);
        if (typeof result === "number") return result + 2 ** -20;
        spoilt(out);
        return result;
      },
    },
  }) as TrialSide<CpuMemory>["ops"];
  return { ...CPU_TRIAL_SIDE, ops };
}

async function failures(side: TrialSide<CpuMemory>): Promise<string[]> {
  const names: string[] = [];
  for (const { name, run } of CASES)
    if (differs(await run(CPU_TRIAL_SIDE), await run(side)) !== undefined) names.push(name);
  return names;
}

describe("cases of the trial", () => {
  it("agree with themselves", async () => {
    assert.deepEqual(await failures(CPU_TRIAL_SIDE), []);
  });

  for (const operation of OPERATIONS) {
    it(`find one wrong bit of ${operation} @long`, async () => {
      const side = isOfTensors(operation) ? faulty(operation) : { ...CPU_TRIAL_SIDE, ...FAULTS[operation] };
      const failing = await failures(side);
      assert.ok(failing.length > 0 && failing.every((name) => name.includes(operation)), failing.join("; "));
    });
  }

  it("find one wrong bit of noise that is drawn as it is mixed", async () => {
    const injectDrawn: TrialSide<CpuMemory>["injectDrawn"] = (out, ...operands) => {
      CPU_TRIAL_SIDE.injectDrawn(out, ...operands);
      new Uint8Array(out.buffer)[0]! ^= 1;
    };
    const failing = await failures({ ...CPU_TRIAL_SIDE, injectDrawn });
    assert.ok(failing.length > 0 && failing.every((name) => name.endsWith(", drawn")), failing.join("; "));
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
