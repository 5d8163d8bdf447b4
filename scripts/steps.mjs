/**
 * Runs every step, one after another, says how long each took, and ends the process: with 1 if a step failed.
 *
 * @param {Record<string, () => boolean>} steps
 */
export function runSteps(steps) {
  const failed = Object.entries(steps).flatMap(([name, run]) => {
    const started = performance.now();
    process.stderr.write(`\n== ${name}\n`);
    const isGood = run();
    process.stderr.write(`${isGood ? "passed" : "FAILED"}, ${((performance.now() - started) / 1000).toFixed(1)} s\n`);
    return isGood ? [] : [name];
  });
  process.stderr.write(failed.length === 0 ? "\nAll checks passed.\n" : `\nFailed: ${failed.join(", ")}.\n`);
  process.exit(failed.length === 0 ? 0 : 1);
}
