/** Reads a text once, however often it comes in a row: items of a batch have graph and job in common. */
export function lastOf<T, Text = string>(read: (text: Text) => T): (text: Text) => T {
  let last: { readonly text: Text; readonly value: T } | undefined;
  return (text) => {
    if (last?.text !== text) last = { text, value: read(text) };
    return last.value;
  };
}
