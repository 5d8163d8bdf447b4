import assert from "node:assert/strict";
import { readArguments } from "#src/cli/table/arguments.js";
import { COMMANDS } from "#src/cli/table/commands.js";
import type { Command } from "#src/cli/table/option.js";

const commands: [string, Command][] = Object.entries(COMMANDS);

/** Words of a line in the shell's single quotes, or in none. */
const wordsOf = (line: string) => [...line.matchAll(/(?:'[^']*'|[^\s'])+/g)].map(([word]) => word.replaceAll("'", ""));

describe("tables of commands", () => {
  it("have examples whose every option is read", () => {
    for (const [name, command] of commands) {
      for (const example of command.examples ?? []) {
        const args = readArguments<Record<string, unknown>>(name, command, wordsOf(example));
        assert.ok(args !== undefined, example);
        for (const option of Object.keys({ ...command.operands, ...command.options })) args.get(option);
      }
    }
  });

  it("exclude options that exist", () => {
    for (const [name, { options }] of commands) {
      const excluded = Object.values(options).flatMap(({ excludes }) => excludes?.options ?? []);
      const unknown = excluded.filter((option) => !Object.hasOwn(options, option));
      assert.deepEqual(unknown, [], name);
    }
  });

  it("have an operand that is many, or may be left out, as the last one alone", () => {
    for (const [name, { operands }] of commands) {
      const early = Object.values(operands).slice(0, -1);
      assert.ok(
        early.every(({ isMany, isOptional }) => !isMany && !isOptional),
        name,
      );
    }
  });

  it("give no option the name of an operand", () => {
    for (const [name, { operands, options }] of commands)
      assert.deepEqual(
        Object.keys(operands).filter((operand) => Object.hasOwn(options, operand)),
        [],
        name,
      );
  });
});
