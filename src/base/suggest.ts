/**
 * Candidate that a word probably means: the same except for case and signs ("DPM++ 2M"), one that it begins ("euler_a"), the
 * closest by edit distance if that is close enough for a typing error, or one of the word's first parts
 * ("dpmpp_2m_karras"). @internal
 */
export function closest(word: string, candidates: Iterable<string>): string | undefined {
  // words of less than three letters are all close to each other, and more than three edits make another word
  const limit = Math.min(Math.floor(word.length / 3), 3);
  const lower = word.slice(0, 64).toLowerCase();
  const beginnings = beginningsOf(lower);
  const letters = beginnings.at(-1) ?? "";
  let [begun, near, beginning]: (string | undefined)[] = [];
  let bestDistance = limit + 1;
  for (const candidate of candidates) {
    const other = candidate.slice(0, 64).toLowerCase();
    const others = beginningsOf(other).at(-1) ?? "";
    if (letters !== "" && letters === others) return candidate;
    const isShorter = begun === undefined || candidate.length < begun.length;
    if (letters.length >= BEGINNING && others.startsWith(letters) && isShorter) begun = candidate;
    const isLonger = beginning === undefined || candidate.length > beginning.length;
    if (others.length >= BEGINNING && beginnings.includes(others) && isLonger) beginning = candidate;
    const distance = editDistance(lower, other, bestDistance);
    if (distance < bestDistance) [near, bestDistance] = [candidate, distance];
  }
  return begun ?? near ?? beginning;
}

/** Letters that make a beginning: fewer begin many words. */
const BEGINNING = 5;

/** The parts of a name between its signs, joined up to each of them; "++" is read as samplers' names spell it. */
function beginningsOf(name: string): string[] {
  let joined = "";
  return (name.replaceAll("++", "pp").match(/[\p{L}\p{N}]+/gu) ?? []).map((part) => (joined += part));
}

/** Closest candidate, and the sentence that suggests it, with a space before it; "" if none is close. */
export function suggest(
  word: unknown,
  candidates: Iterable<string>,
  show?: (candidate: string) => string,
): { readonly suggestion: string | undefined; readonly hint: string } {
  const suggestion = typeof word === "string" ? closest(word, candidates) : undefined;
  return { suggestion, hint: hintOf(suggestion, show) };
}

/** Sentence that suggests a candidate, with a space before it. */
export function hintOf(suggestion: string | undefined, show = (candidate: string) => candidate): string {
  return suggestion === undefined ? "" : ` Did you mean ${show(suggestion)}?`;
}

function editDistance(a: string, b: string, limit: number): number {
  if (Math.abs(a.length - b.length) >= limit) return limit;
  let before: readonly number[] = [];
  let previous = Array.from({ length: b.length + 1 }, (_, j) => j);
  for (let i = 1; i <= a.length; i++) {
    const row = [i];
    for (let j = 1; j <= b.length; j++) {
      const substitution = previous[j - 1]! + (a[i - 1] === b[j - 1] ? 0 : 1);
      const isSwapped = i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1];
      const swap = isSwapped ? before[j - 2]! + 1 : Infinity;
      row.push(Math.min(substitution, swap, previous[j]! + 1, row[j - 1]! + 1));
    }
    [before, previous] = [previous, row];
  }
  return previous[b.length]!;
}
