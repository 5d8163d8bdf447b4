import assert from "node:assert/strict";
import { createRetryPolicy } from "#src/service/hooks/runs/outcome.js";

const config = { attempts: 4, first_delay_seconds: 5, longest_delay_seconds: 12, codes: ["remote.failed"] };

describe("retry policy", () => {
  it("doubles the delay up to the longest, less a quarter at most", () => {
    const delays = (random: number) => {
      const policy = createRetryPolicy(config, () => random);
      return [1, 2, 3, 99].map((attempt) => policy.delayMs(attempt));
    };
    assert.deepEqual(delays(0), [5000, 10_000, 12_000, 12_000]);
    assert.deepEqual(delays(1), [3750, 7500, 9000, 9000]);
  });

  it("knows its codes, and how long a run takes at most", () => {
    const policy = createRetryPolicy(config);
    assert.deepEqual([policy.isTransient("remote.failed"), policy.isTransient("agent_failed")], [true, false]);
    assert.equal(policy.mostSeconds(600), 3 * 612);
  });
});
