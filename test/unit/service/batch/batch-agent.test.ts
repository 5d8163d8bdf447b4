import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { createCheckpointHost } from "#src/host/checkpoint/host.js";
import type { Attempt } from "#src/render/batch/runner.js";
import { render } from "#src/render/render.js";
import { ModelThread } from "#src/render/threads/model-thread.js";
import { createBatchAgent } from "#src/service/batch/batch-agent.js";
import { printMessage, readReply } from "#src/service/batch/batch-message.js";
import { type Pending, publishReply } from "#src/service/batch/chunks.js";
import { localFiles } from "#src/service/hooks/files/file-store.js";
import type { RunFile } from "#src/service/hooks/run.js";
import { refuses, rejectsAs } from "../../../helpers/errors.js";
import { filesIn, sha256, temporaryFolder } from "../../../helpers/folders.js";
import { tinyModels } from "../../../helpers/models/tiny-host.js";

const GRAPH = {
  "1": { class_type: "EmptyImage", inputs: { width: 16, height: 16, batch_size: 1, color: 0 } },
  "2": { class_type: "SaveImage", inputs: { images: ["1", 0], filename_prefix: "sub/p" } },
};

describe("agent of a batch's runs", () => {
  const folder = temporaryFolder();
  const out = () => join(folder(), "out");
  const namesOf = (position: number) => ({ batch: "0123456789ab", position, number: position + 1, isKept: false });
  const message = (...colors: readonly unknown[]) =>
    printMessage({
      graph: JSON.stringify(GRAPH),
      job: JSON.stringify({ outputDir: out() }),
      items: colors.map((color, position) => ({
        set: JSON.stringify({ "1.color": color }),
        passing: ["1.color"],
        names: namesOf(position),
      })),
    });
  const call = async (text: string, hasModels = false, signal = new AbortController().signal, attempt?: number) => {
    const models = hasModels ? new ModelThread({ folders: tinyModels() }) : undefined;
    const agent = createBatchAgent({
      outputDir: join(folder(), "shared"),
      device: "cpu",
      allowNetwork: true,
      config: {},
      threads: 1,
      models,
    });
    const files: RunFile[] = [];
    const addFile = ({ path, name = "" }: { path: string; name?: string }) => {
      files.push({ name, path, contentType: null });
      return { name, url: "" };
    };
    try {
      const run = { id: "run", sessionKey: "s", message: text, name: null, ...(attempt && { attempt }) };
      const { response } = await agent(run, { signal, emit: () => undefined, addFile });
      return { response, pack: files[0] };
    } finally {
      await agent.close();
      await models?.close();
    }
  };
  const publish = async (end: { response: string; pack?: RunFile }, count: number) => {
    const attempts: Attempt[] = [];
    const pending = Array.from({ length: count }, (_, position) => ({
      item: { names: namesOf(position) },
      resolve: (attempt: Attempt) => attempts.push(attempt),
    })) as unknown as Pending[];
    await publishReply(pending, { state: "succeeded", ...end }, out(), localFiles);
    return attempts;
  };

  for (const [where, hasModels] of [
    ["in threads", false],
    ["with a worker's models", true],
  ] as const) {
    it(`renders items ${where}, of which one fails, into one pack, and writes nothing else`, async () => {
      const end = await call(message(1, "wrong", 255), hasModels);
      assert.deepEqual(filesIn(folder()), ["shared/runs/run/items.pack"]);
      const [first, second, third] = await publish(end, 3);
      assert.deepEqual([first?.status, second?.status, third?.status], ["success", "failed", "success"]);
      assert.match(second!.error!.message, /^Node 1 .*received/);
      // a receipt names the host
      const host = hasModels ? createCheckpointHost({ models: tinyModels() }) : undefined;
      const { files } = await render(GRAPH, { set: { "1.color": 255 }, outputDir: join(folder(), "alone"), host });
      assert.equal(third?.files[0]?.path, join(out(), "sub/p_00003_.png"));
      assert.equal(sha256(readFileSync(third!.files[0]!.path)), sha256(readFileSync(files[0]!.path)));
    });
  }

  it("leaves no pack where it is aborted, and shares no folder with an earlier attempt", async () => {
    const signal = AbortSignal.abort();
    await rejectsAs(signal, call(message(1), false, signal));
    assert.deepEqual(filesIn(folder()), []);
    await call(message(1), false, undefined, 2);
    assert.deepEqual(filesIn(folder()), ["shared/runs/run.2/items.pack"]);
  });

  it("refuses a message of another version", async () => {
    const other = JSON.stringify({ ...JSON.parse(message(1)), latentkit: "0.0.1" });
    await refuses(
      call(other, false),
      "config.invalid",
      /the batch was started with 0\.0\.1: use the same version for both\.$/,
    );
  });

  it("has its reply refused if the pack is absent, cut or damaged", async () => {
    const { response, pack } = await call(message(1, 2), false);
    const absent = { ...pack!, path: join(folder(), "absent") };
    const where = /Cannot read the files a worker rendered at ".*": batch and workers must share one output_dir/;
    await refuses(
      publish({ response, pack: absent }, 2),
      "store.unavailable",
      /absent" \(the file is gone\): batch and workers/,
    );
    await refuses(publish({ response }, 2), "store.unavailable");
    const longer = JSON.stringify({
      items: readReply(response).map((item) => ({ ...item, writes: longerBy(item.writes) })),
    });
    await refuses(
      publish({ response: longer, pack }, 2),
      "store.unavailable",
      new RegExp(where.source.replace('":', '" \\(the file is too short\\):')),
    );
    await refuses(publish({ response: "{}", pack }, 2), "store.unavailable", /invalid response/);
  });

  it("publishes the items behind one that cannot be written", async () => {
    const end = await call(message(1, 2), false);
    const [first] = readReply(end.response);
    const outside = { ...first!, writes: first!.writes.map((write) => ({ ...write, folder: "../up" })) };
    const response = JSON.stringify({ items: [outside, readReply(end.response)[1]] });
    const attempts = await publish({ ...end, response }, 2);
    assert.deepEqual([attempts[0]?.error?.code, attempts[1]?.status], ["path.outside", "success"]);
    assert.deepEqual(filesIn(out()), ["sub/p_00002_.png"]);
  });
});

const longerBy = (writes: readonly { readonly length: number }[]) =>
  writes.map((write) => ({ ...write, length: write.length + 1000 }));
