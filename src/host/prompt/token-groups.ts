import { describe, LatentkitError } from "../../base/errors.js";
import type { ClipEncoder, FoundEmbedding, Warn } from "../types.js";

/** The part of an encoder that splits a text. */
type Splitter = Pick<ClipEncoder, "name" | "tokenize" | "embedding">;

const MARK = "embedding:";
const WORD = /\S*/y;

/**
 * Tokenizes the text of a segment: one group of ids, or several where "embedding:NAME" stands at its beginning or after a
 * space or a line end and the encoder has embeddings. Each embedding is a group, and so is the text between two of them.
 * `warn` receives why one is left out.
 */
export function tokenGroups(text: string, encoder: Splitter, warn?: Warn): (readonly number[])[] {
  const groups: (readonly number[])[] = [];
  let plain = "";
  let at = 0;
  for (let mark = nextMark(text, 0, encoder); mark >= 0; mark = nextMark(text, at, encoder)) {
    plain += text.slice(at, mark);
    const word = wordAt(text, mark + MARK.length);
    at = mark + MARK.length + word.length;
    if (word === "") {
      plain += MARK;
      continue;
    }
    const { ids, rest, warning } = lookUp(word, encoder);
    if (warning !== undefined) warn?.(warning);
    groups.push(tokenIds(plain, encoder), ids);
    plain = rest;
  }
  groups.push(tokenIds(plain + text.slice(at), encoder));
  return groups;
}

function nextMark(text: string, from: number, { embedding }: Splitter): number {
  if (embedding === undefined) return -1;
  let mark = text.indexOf(MARK, from);
  while (mark > 0 && text[mark - 1] !== " " && text[mark - 1] !== "\n") mark = text.indexOf(MARK, mark + 1);
  return mark;
}

function wordAt(text: string, from: number): string {
  WORD.lastIndex = from;
  return WORD.exec(text)?.[0] ?? "";
}

function lookUp(word: string, encoder: Splitter): FoundEmbedding {
  const found = encoder.embedding!(word);
  requireIds(found.ids, encoder, "embedding()");
  return found;
}

function tokenIds(text: string, encoder: Splitter): readonly number[] {
  return requireIds(encoder.tokenize(text), encoder, "tokenize()");
}

function requireIds(ids: readonly number[], encoder: Splitter, method: string): readonly number[] {
  if (Array.isArray(ids) && ids.every((id) => Number.isInteger(id))) return ids;
  throw new LatentkitError(
    "value.invalid",
    `Clip encoder "${encoder.name}": expected ${method} to return a list of whole numbers, received ${describe(ids)}.`,
  );
}
