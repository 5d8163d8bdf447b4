// mocha's "spec", which also writes down how long the tests of each file took and which failed.
const { writeFileSync } = require("node:fs");
const { relative } = require("node:path");
const Mocha = require("mocha");

const { EVENT_HOOK_END, EVENT_TEST_END, EVENT_RUN_END } = Mocha.Runner.constants;

/**
 * @typedef {{ passed: number, skipped: number, failures: Failure[], parts: Part[] }} Outcome
 * @typedef {{ file: string, title: string }} Failure
 * @typedef {{ file: string, ms: number, slowest: string, slowestMs: number }} Part
 */

module.exports = class Timed extends Mocha.reporters.Spec {
  /**
   * @param {Mocha.Runner} runner
   * @param {Mocha.MochaOptions} options
   */
  constructor(runner, options) {
    super(runner, options);
    /** @type {Map<string, Part>} */
    const parts = new Map();
    /** @param {string} file */
    const nameOf = (file) => relative("build/test", file).replace(/\.test\.js$/, "");
    /** @param {Mocha.Runnable} step */
    const add = ({ file = "", title, duration = 0 }) => {
      const name = nameOf(file);
      const part = parts.get(name) ?? { file: name, ms: 0, slowest: "", slowestMs: 0 };
      const isSlowest = duration > part.slowestMs;
      parts.set(name, {
        file: name,
        ms: part.ms + duration,
        slowest: isSlowest ? title : part.slowest,
        slowestMs: isSlowest ? duration : part.slowestMs,
      });
    };
    // in parallel mode all events of a file come at once, so that only what they carry can be added up
    runner.on(EVENT_TEST_END, add);
    runner.on(EVENT_HOOK_END, add);
    runner.once(EVENT_RUN_END, () => {
      const { passes: passed, pending: skipped } = this.stats;
      const failures = this.failures.map((test) => ({ file: nameOf(test.file ?? ""), title: test.fullTitle() }));
      /** @type {Outcome} */
      const outcome = { passed, skipped, failures, parts: [...parts.values()] };
      writeFileSync(options.reporterOptions.output, JSON.stringify(outcome));
    });
  }
};
