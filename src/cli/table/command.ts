import type { Operand, Option } from "./option.js";

/** A command of the command line: parser, help and docs/cli.md follow from it. */
export interface Command {
  readonly summary: string;
  /** By their names, in their order; one that may be many is the last. */
  readonly operands: Readonly<Record<string, Operand>>;
  readonly options: Readonly<Record<string, Option>>;
  /** Paragraphs below the options. */
  readonly notes?: readonly string[];
  /** Arguments of calls that the help shows. */
  readonly examples?: readonly string[];
  /** Whether SIGHUP, where the process has no terminal that could close, is the command's own: it reads files again. */
  readonly reloads?: true;
  /** Whether it has failed where its reader leaves before the end, as a run or check; a listing has not. */
  readonly isReadToEnd?: true;
}
