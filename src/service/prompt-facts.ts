import { isPlainObject, parseJson, printJsonUnicode } from "../io/json/lossless.js";

/** Facts of a prompt of ComfyUI's classic API beside its graph. Its run keeps them as its message. */
export interface PromptFacts {
  /** "" for a prompt of no client. */
  readonly clientId: string;
  /** Whether it goes before the prompts that wait. */
  readonly isFront: boolean;
  /** Ids of the nodes whose outputs are wanted; null: of all. */
  readonly targets: readonly string[] | null;
  /** Ids of the output nodes that the run computes. */
  readonly outputs: readonly string[];
  /** Texts of its pictures, beside the graph. */
  readonly extraPnginfo: Readonly<Record<string, unknown>>;
}

/** Message of a prompt's run: one line of JSON, with every digit. */
export const printPromptFacts = (facts: PromptFacts): string => printJsonUnicode({ ...facts });

/** Facts that a message holds; undefined for a message of another kind. */
export function readPromptFacts(message: string): PromptFacts | undefined {
  // lines of events that waited for the session's next run come first
  const line = message.slice(message.lastIndexOf("\n") + 1);
  if (!line.startsWith('{"clientId": ')) return undefined;
  const facts = parseJson(line);
  return isPlainObject(facts) && isPlainObject(facts.extraPnginfo) ? (facts as unknown as PromptFacts) : undefined;
}
