// A process of its own that keeps results in a disk cache: node cache-writer.js FOLDER FIRST COUNT BYTES. Result i is a
// tensor of 50,000 numbers i. Sends "writing" before the first; at the end prints how many were wrong.
import { createHash } from "node:crypto";
import { createDiskCache } from "#src/graph/disk-cache/disk-cache.js";
import { Tensor } from "#src/tensor/tensor.js";

/** Numbers in each result. */
export const SIZE = 50_000;
export const signatureOf = (i: number): string => createHash("sha256").update(String(i)).digest("hex");
/** Whether these are the values of result i. */
export const isResult = (i: number, outputs: readonly (readonly unknown[])[]): boolean => {
  const value = outputs[0]?.[0];
  return value instanceof Tensor && value.size === SIZE && value.data.every((element) => element === i);
};

const [folder, first, count, bytes] = process.argv.slice(2);
if (folder !== undefined && process.argv[1]?.endsWith("cache-writer.js")) {
  const cache = createDiskCache({ folder, bytes: Number(bytes), minMs: 0 });
  let wrong = 0;
  process.send?.("writing");
  for (let i = Number(first); i < Number(first) + Number(count); i++) {
    cache.write(signatureOf(i), [[Tensor.full([SIZE], i)]], 1);
    if (i % 4 === 0) await cache.written();
    const earlier = i - 3;
    const outputs = await cache.read(signatureOf(earlier), () => true);
    if (outputs !== undefined && !isResult(earlier, outputs)) wrong++;
  }
  await cache.idle();
  console.log(JSON.stringify({ wrong, warning: cache.takeWarning() ?? null }));
}
