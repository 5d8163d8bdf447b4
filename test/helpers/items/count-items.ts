// A program that reads the seeds of a file of items, which count down from 2^64 - 1, and prints their number and its memory.
import { createGraphKeys } from "#src/render/items/graph-keys.js";
import { openItems } from "#src/render/items/open.js";

const keys = createGraphKeys({ "5": { class_type: "ext latentNoisy", inputs: { seed: 7 } } });
const file = await openItems(process.argv[2]!, keys);
let [count, bytes] = [0, 0];
for (let item = await file.next(); item !== undefined; item = await file.next()) {
  const { values, fault } = item;
  if (fault !== undefined || values["5.seed"] !== String(2n ** 64n - 1n - BigInt(count))) {
    throw new Error(`Row ${count} is ${JSON.stringify(values)}.`);
  }
  // the system's own maximum begins with that of the process which started this one
  if (++count % 10_000 === 0) bytes = Math.max(bytes, process.memoryUsage.rss());
}
process.stdout.write(JSON.stringify({ count, bytes }));
