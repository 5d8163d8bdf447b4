// A life of a batch that soak-batch and soak-photos kill: prints a line for each item that is done, with the memory in MB at
// every hundredth. Arguments: graph, number of items or folder of pictures, output folder, template of the names.
import { batch, picturesIn } from "../../dist/index.js";
import { residentMb } from "../resident-mb.mjs";

const [graph, source, outputDir, name] = process.argv.slice(2);
const items = /^\d+$/.test(source)
  ? Array.from({ length: Number(source) }, (_, seed) => ({ "4.seed": seed, scene: `lake ${seed % 7}` }))
  : picturesIn(`${source}/*.png`);
const options = { outputDir, journal: `${outputDir}/batch.jsonl`, resume: true, concurrency: 2, ...(name && { name }) };
let end;
let done = 0;
for await (const event of batch(graph, items, options)) {
  if (event.type === "item-failed") throw event.error;
  if (event.type === "item-done")
    process.stdout.write(++done % 100 === 0 ? `${Math.round(residentMb(process.pid))}\n` : "\n");
  end = event;
}
process.exitCode = end?.type === "batch-done" && end.status === "success" ? 0 : 1;
