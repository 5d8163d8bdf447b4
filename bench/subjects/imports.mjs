// Whole processes that import a package and end: their time, with Node's own start, and their peak of memory.
import { execFileSync } from "node:child_process";
import { fileURLToPath } from "node:url";

const peak = new URL("../peak.mjs", import.meta.url).href;

function runModule(source) {
  return execFileSync(process.execPath, ["--input-type=module", "-e", source], {
    cwd: fileURLToPath(new URL(".", import.meta.url)),
    encoding: "utf8",
    env: { ...process.env, NODE_OPTIONS: "" },
  });
}

/** Subjects of a package: `import NAME` takes the time of the process, `imported NAME` returns its bytes. */
const subjectsOf = (name, importIt = `await import("${name}");`) => [
  [`import ${name}`, () => () => runModule(importIt)],
  [
    `imported ${name}`,
    () => () => Number(runModule(`import { peakBytes } from "${peak}"; ${importIt} console.log(peakBytes());`)),
  ],
];

export const imports = Object.fromEntries([
  ...subjectsOf("nothing", ""),
  ...["latentkit", "latentkit/hooks", "express", "sharp"].flatMap((name) => subjectsOf(name)),
]);
