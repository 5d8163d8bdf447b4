const MOST = 5;
/** Share of common pairs of letters from which on names look alike. */
const ALIKE = 0.4;
/** Longer names are compared by their beginnings. */
const MAX_CHARACTERS = 128;

/**
 * Names most like a word, up to five, the nearest first: by the share of pairs of neighbouring characters that they have
 * in common (Dice's coefficient), without folders, endings and case.
 */
export function nearest(word: string, names: readonly string[]): string[] {
  const wanted = pairsOf(word);
  return names
    .map((name) => ({ name, likeness: likeness(wanted, pairsOf(name)) }))
    .filter(({ likeness }) => likeness >= ALIKE)
    .sort((a, b) => b.likeness - a.likeness)
    .slice(0, MOST)
    .map(({ name }) => name);
}

function pairsOf(name: string): Set<string> {
  const bare = name
    .slice(name.lastIndexOf("/") + 1)
    .replace(/\.[a-z]{1,16}$/i, "")
    .slice(0, MAX_CHARACTERS)
    .toLowerCase();
  // a single character is no pair, and its name is like itself
  const pairs = new Set([bare.slice(0, 2)]);
  for (let i = 1; i + 1 < bare.length; i++) pairs.add(bare.slice(i, i + 2));
  return pairs;
}

function likeness(a: ReadonlySet<string>, b: ReadonlySet<string>): number {
  let common = 0;
  for (const pair of a) if (b.has(pair)) common++;
  return (2 * common) / (a.size + b.size);
}
