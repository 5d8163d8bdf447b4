/** No node id is longer; without an end, a key of a million dots would be cut a million times. */
const MAX_ID_CHARACTERS = 1000;

/** Every node id and input that a key such as "6.text" may mean: both may hold dots themselves. */
export function* readDottedKey(key: string): Generator<{ nodeId: string; input: string }, void, undefined> {
  for (let dot = key.indexOf("."); dot !== -1 && dot <= MAX_ID_CHARACTERS; dot = key.indexOf(".", dot + 1)) {
    yield { nodeId: key.slice(0, dot), input: key.slice(dot + 1) };
  }
}
