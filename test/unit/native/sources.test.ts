import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { relative } from "node:path";

interface Command {
  file: string;
  command: string;
}

interface Target {
  target_name: string;
  sources: string[];
  cflags_c?: string[];
  cflags_cc?: string[];
}

/** Flags that could change a bit of a result. */
const NUMERIC = /^(-m|-ffp|-ffast|-fno-math|-fno-trapping|-fno-tree)/;

describe("bindings.gyp", () => {
  const { targets } = JSON.parse(readFileSync("bindings.gyp", "utf8")) as { targets: Target[] };
  const commands = JSON.parse(readFileSync("build/compile_commands.json", "utf8")) as Command[];
  // the library that the fake driver tries is the CUDA library around another image
  const built = commands
    .map(({ file, command }) => ({ source: relative(process.cwd(), file), command }))
    .filter(({ source }) => source.startsWith("native/"))
    .map((entry) => ({ ...entry, target: targetOf(entry.command).replace(/_for_tests$/, "") }));

  it("lists the sources that CMake builds, target by target", () => {
    for (const name of new Set([...built.map(({ target }) => target), ...targets.map((t) => t.target_name)])) {
      const wanted = [...new Set(built.filter(({ target }) => target === name).map(({ source }) => source))];
      const listed = targets.find((target) => target.target_name === name)?.sources ?? [];
      assert.deepEqual([...listed].sort(), wanted.sort(), name);
    }
  });

  it("compiles them with the same flags where a flag can change a result", () => {
    for (const target of targets) {
      const { command } = built.find((entry) => entry.target === target.target_name)!;
      const wanted = command.split(" ").filter((flag) => NUMERIC.test(flag));
      const listed = [...(target.cflags_c ?? []), ...(target.cflags_cc ?? [])].filter((flag) => NUMERIC.test(flag));
      assert.deepEqual([...listed].sort(), wanted.sort(), target.target_name);
    }
  });
});

function targetOf(command: string): string {
  return command.match(/CMakeFiles\/([\w-]+)\.dir/)![1]!;
}
