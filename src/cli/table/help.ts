import type { Command, Operand, Option } from "./option.js";

const WIDTH = 100;
/** Longest name and value that stand on one line with their meaning. */
const NAME_WIDTH = 20;

/** The command's name and operands: "convert GRAPH [FILE.json]". */
export function usageOf(name: string, { operands }: Command): string {
  const words = Object.entries(operands).map(([operand, { isOptional, isMany }]) => {
    const word = isMany ? `${operand}…` : operand;
    return isOptional ? `[${word}]` : word;
  });
  return [name, ...words].join(" ");
}

/** Text of a command's `--help`. */
export function helpOf(name: string, command: Command): string {
  const { summary, operands, options, notes = [], examples = [] } = command;
  const rows = [
    ...Object.entries(operands).map(([operand, told]) => ({ name: operand, told })),
    ...Object.entries(options).map(([option, told]) => ({ name: optionName(option, told), told })),
  ];
  const column = Math.max(...rows.map(({ name }) => name.length).filter((length) => length <= NAME_WIDTH));
  const lines = rows.flatMap(({ name, told }) => [
    ...("above" in told && told.above !== undefined ? ["", ...wrap(told.above, WIDTH)] : []),
    ...row(name, meaningOf(told), column + 4),
  ]);
  return [
    `Usage: latentkit ${usageOf(name, command)}`,
    "",
    ...wrap(summary, WIDTH),
    "",
    ...lines,
    ...(notes.length === 0 ? [] : ["", ...notes.flatMap((note) => wrap(note, WIDTH))]),
    ...(examples.length === 0 ? [] : ["", "Examples:", ...examples.map((example) => `  latentkit ${name} ${example}`)]),
    "",
  ].join("\n");
}

/** Text of `latentkit --help`. */
export function overviewOf(commands: Readonly<Record<string, Command>>): string {
  const all = Object.entries(commands).map(([name, command]) => [usageOf(name, command), command.summary] as const);
  const width = Math.max(...all.map(([usage]) => usage.length));
  return [
    "Runs ComfyUI graphs inside Node.js.",
    "",
    ...all.map(([usage, summary]) => `  latentkit ${usage.padEnd(width)}  ${summary}`),
    "",
    "latentkit COMMAND --help shows a command's options.",
    "",
  ].join("\n");
}

function optionName(name: string, { form, bare }: Option): string {
  if (form === undefined) return `--${name}`;
  return `--${name} ${bare === undefined ? form : `[${form}]`}`;
}

function meaningOf(told: Option | Operand): string {
  const { about, absent, isRepeatable = false, excludes } = told as Option;
  const others = excludes?.options.map((name) => `--${name}`) ?? [];
  return [
    absent === undefined ? about : `${about} (${absent})`,
    ...(isRepeatable ? ["repeatable"] : []),
    ...(others.length === 0 ? [] : [`not with ${others.join(", ")}`]),
  ].join("; ");
}

/** A name with its meaning, which begins at the column. */
function row(name: string, meaning: string, column: number): string[] {
  const [first = "", ...rest] = wrap(meaning, WIDTH - column);
  const more = rest.map((line) => `${" ".repeat(column)}${line}`);
  const head = `  ${name}`;
  return name.length + 4 <= column
    ? [`${head.padEnd(column)}${first}`, ...more]
    : [head, `${" ".repeat(column)}${first}`, ...more];
}

/** Lines of at most so many characters, broken at blanks. */
function wrap(text: string, width: number): string[] {
  const lines: string[] = [];
  for (const word of text.split(" ")) {
    const last = lines.at(-1);
    if (last === undefined || last.length + 1 + word.length > width) lines.push(word);
    else lines[lines.length - 1] = `${last} ${word}`;
  }
  return lines;
}
