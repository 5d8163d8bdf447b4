import assert from "node:assert/strict";
import { COMMANDS } from "#src/cli/table/commands.js";
import { helpOf, overviewOf } from "#src/cli/table/help.js";
import { type Command, flag, operands, optionalOperand, text, texts } from "#src/cli/table/option.js";

describe("help", () => {
  it("shows all that a table says of a command", () => {
    const table: Command = {
      summary: "Do something.",
      operands: { IMAGE: operands("pictures"), "OUT.png": optionalOperand("the file", "printed") },
      options: {
        device: text("DEVICE", "where it runs", { absent: "auto" }),
        tag: texts("TAG", "a tag"),
        "a-long-name-of-an-option": text("X", "something"),
        sheet: text("FILE", "a sheet", {
          above: "Of many:",
          bare: /x/,
          excludes: { options: ["device", "tag"], because: "it is alone" },
        }),
        json: flag(`${"word ".repeat(20)}end`),
      },
      notes: ["A note."],
      examples: ["a.png --json"],
    };
    const lines = [
      "Usage: latentkit do IMAGE… [OUT.png]",
      "",
      "Do something.",
      "",
      "  IMAGE            pictures",
      "  OUT.png          the file (printed)",
      "  --device DEVICE  where it runs (auto)",
      "  --tag TAG        a tag; repeatable",
      "  --a-long-name-of-an-option X",
      "                   something",
      "",
      "Of many:",
      "  --sheet [FILE]   a sheet; not with --device, --tag",
      `  --json           ${"word ".repeat(16).trimEnd()}`,
      `                   ${"word ".repeat(4)}end`,
      "",
      "A note.",
      "",
      "Examples:",
      "  latentkit do a.png --json",
      "",
    ];
    assert.deepEqual(helpOf("do", table).split("\n"), lines);
  });

  it("names every operand and option of every command, in lines of at most 100 characters", () => {
    for (const [name, command] of Object.entries(COMMANDS)) {
      const help = helpOf(name, command);
      for (const operand of Object.keys(command.operands)) assert.match(help, new RegExp(`^ {2}${operand} `, "m"));
      for (const option of Object.keys(command.options)) assert.match(help, new RegExp(`^ {2}--${option}( |$)`, "m"));
      const long = help.split("\n").filter((line) => line.length > 100);
      assert.deepEqual(long, []);
    }
  });

  it("lists every command with its summary, in lines of at most 100 characters", () => {
    const overview = overviewOf(COMMANDS);
    const lines = overview.split("\n");
    for (const [name, { summary }] of Object.entries(COMMANDS))
      assert.ok(
        lines.some((line) => line.startsWith(`  latentkit ${name}`) && line.endsWith(`  ${summary}`)),
        name,
      );
    const long = lines.filter((line) => line.length > 100);
    assert.deepEqual(long, []);
  });
});
