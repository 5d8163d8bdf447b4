import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { existsSync, mkdirSync, symlinkSync, truncateSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Readable } from "node:stream";
import { createS3Files, type FileStore, HookError } from "latentkit/hooks";
import { refuses } from "../../../../helpers/errors.js";
import { temporaryFolder } from "../../../../helpers/folders.js";
import { refuse, S3_KEYS, s3Server } from "../../../../helpers/hooks/s3-server.js";

const RUN = "0b6fb8ae-6a4d-4c44-9b3a-0e5a3d3b7f10";
const signal = new AbortController().signal;

describe("createS3Files", () => {
  const s3 = s3Server();
  const folder = temporaryFolder();

  const create = (more = {}): FileStore => createS3Files({ url: s3().url, credentials: S3_KEYS, pauseMs: 1, ...more });
  const fileOf = (name: string, bytes: Uint8Array | string) => {
    const path = join(folder(), "content");
    writeFileSync(path, bytes);
    return { name, path, contentType: null };
  };
  const contentOf = async (content: Readable) => Buffer.concat(await content.toArray());

  it("stores files and reads them, whatever their names and sizes", async () => {
    const files = create();
    for (const [name, size] of [
      ["fox.png", 300_000],
      ["a b+c/ü😀 'x' (1)*.txt".replace("/", "_"), 10],
      ["empty", 0],
      [`${"😀".repeat(250)}.png`, 1],
    ] as const) {
      const bytes = randomBytes(size);
      const stored = await files.put(RUN, fileOf(name, bytes), signal);
      assert.match(stored.path, /^s3:\/\/renders\/team a\/x\/0b6fb8ae-/);
      assert.ok(Buffer.byteLength(stored.path) < 1024);
      const opened = await files.open(stored, { headOnly: false });
      assert.equal(opened.size, size);
      assert.deepEqual(await contentOf(opened.read()), bytes);
      assert.equal(opened.modified.toISOString(), "2026-10-21T07:28:00.000Z");
      await opened.close();
      const head = await files.open(stored, { headOnly: true });
      assert.deepEqual([head.size, head.etag], [size, opened.etag]);
      await head.close();
    }
    assert.equal(s3().objects.size, 4);
  });

  it("never replaces an object: each attempt has a key of its own", async () => {
    const files = create();
    const [one, two] = [await files.put(RUN, fileOf("a", "1"), signal), await files.put(RUN, fileOf("a", "2"), signal)];
    assert.notEqual(one.path, two.path);
    assert.equal(await files.put(RUN, one, signal), one);
    assert.equal(s3().objects.size, 2);
  });

  it("serves files of this machine that were stored before", async () => {
    const opened = await create().open(fileOf("old", "before"), { headOnly: false });
    assert.equal(String(await contentOf(opened.read())), "before");
    await opened.close();
  });

  it("tries again after failures that may pass, and stores the file once", async () => {
    let left = 3;
    s3().intercept = (req, res) => {
      left -= 1;
      if (left === 2) req.socket.destroy();
      else if (left === 1) refuse(res, 503, "SlowDown");
      else if (left === 0) refuse(res, 400, "RequestTimeout");
      return left >= 0;
    };
    const stored = await create().put(RUN, fileOf("a.txt", "a".repeat(200_000)), signal);
    assert.equal(s3().requests.length, 4);
    assert.deepEqual([...s3().objects.keys()], [`/${stored.path.slice("s3://".length)}`]);
  });

  it("fails with one sentence that says why, without a key", async () => {
    const files = create();
    const file = fileOf("fox.png", "x".repeat(1_000_000));
    for (const [answer, why] of [
      [403, "403 AccessDenied"],
      [503, "503 SlowDown"],
    ] as const) {
      s3().intercept = (_req, res) => {
        refuse(res, answer, why.slice(4));
        return true;
      };
      const error = await refuses(files.put(RUN, file, signal), "file.write-failed");
      assert.equal(error.message, `The file "fox.png" could not be stored in s3://renders/ (${why}).`);
    }
    s3().intercept = (_req, res) => {
      refuse(res, 301, "PermanentRedirect", { "x-amz-bucket-region": "ap-south-1", Location: "http://127.0.0.1:1/" });
      return true;
    };
    await refuses(files.put(RUN, file, signal), "file.write-failed", /the bucket is in the region ap-south-1\)\.$/);
    s3().intercept = () => false;
    const wrong = create({ credentials: async () => ({ ...S3_KEYS, secretAccessKey: "not the key" }) });
    const error = await refuses(wrong.put(RUN, file, signal), "file.write-failed", /403 SignatureDoesNotMatch/);
    assert.doesNotMatch(error.message, /not the key|AKID/);
    assert.equal(s3().objects.size, 0);
  });

  it("refuses links and files that are gone, and stores none that shrinks", async () => {
    const files = create();
    const file = fileOf("a", "b".repeat(500_000));
    const link = join(folder(), "link");
    symlinkSync(file.path, link);
    for (const path of [link, join(folder(), "none"), folder()]) {
      await refuses(files.put(RUN, { ...file, path }, signal), "file.write-failed", /the file is gone/);
    }
    const short = createS3Files({
      url: s3().url,
      // after the checksum, before the body
      credentials: async () => {
        truncateSync(file.path, 3);
        return S3_KEYS;
      },
      pauseMs: 1,
    });
    await refuses(short.put(RUN, file, signal), "file.write-failed", /\(the file has become shorter\)\.$/);
    assert.equal(s3().objects.size, 0);
  });

  it("stops when the run is cut off", async () => {
    const abort = new AbortController();
    s3().intercept = () => {
      abort.abort(new Error("cut"));
      return true;
    };
    await assert.rejects(create().put(RUN, fileOf("a", "b"), abort.signal), /^Error: cut$/);
    await assert.rejects(create().put(RUN, fileOf("a", "b"), abort.signal), /^Error: cut$/);
    assert.equal(s3().requests.length, 1);
  });

  it("tells a file that is gone from a server that is down", async () => {
    const files = create();
    const kindOf = async (path: string) => {
      const error = await files
        .open({ name: "a", path, contentType: null }, { headOnly: false })
        .catch((e: unknown) => e);
      return error instanceof HookError ? error.kind : error;
    };
    assert.equal(await kindOf("s3://renders/team a/x/none"), "not_found");
    assert.equal(await kindOf("s3://other/none"), "not_found");
    s3().intercept = (req) => req.socket.destroy() !== undefined;
    assert.equal(await kindOf("s3://renders/team a/x/none"), "files_unavailable");
  });

  it("removes the scratch folder of a run and no other", async () => {
    const scratch = join(folder(), "runs");
    const folders = [RUN, `${RUN}.2`, "other"];
    for (const run of folders) mkdirSync(join(scratch, run, "deep"), { recursive: true });
    const left = () => folders.map((run) => existsSync(join(scratch, run)));
    const files = create({ scratch });
    await files.tidy!(RUN);
    await files.tidy!("none");
    assert.deepEqual(left(), [false, true, true]);
    await files.tidy!(RUN, 2);
    assert.deepEqual(left(), [false, false, true]);
  });

  it("needs credentials", async () => {
    const { AWS_ACCESS_KEY_ID: before } = process.env;
    delete process.env.AWS_ACCESS_KEY_ID;
    try {
      await refuses(() => createS3Files({ url: s3().url }), "config.invalid", /AWS_ACCESS_KEY_ID/);
    } finally {
      if (before !== undefined) process.env.AWS_ACCESS_KEY_ID = before;
    }
    await refuses(() => createS3Files({ url: s3().url, credentials: {} as never }), "config.invalid", /accessKeyId/);
  });
});
