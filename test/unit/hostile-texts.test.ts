import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { encodePrompt, parsePrompt, registry, tokenizePrompt } from "latentkit";
import { describe as describeValue } from "#src/base/errors.js";
import { closest } from "#src/base/suggest.js";
import { nearest } from "#src/host/checkpoint/files/model-folders.js";
import { tokenizeClip } from "#src/host/checkpoint/tokenizer/clip.js";
import { previewClip } from "#src/host/preview/clip.js";
import { parseA1111, pythonFloat } from "#src/host/prompt/parse.js";
import { scheduleTexts, takeTimestep } from "#src/host/prompt/schedule.js";
import { tokenGroups } from "#src/host/prompt/tokenize.js";
import { readInputFile } from "#src/io/files/input-file.js";
import { dataBytes, givenBytes } from "#src/io/files/input-text.js";
import { expandPrefix, resolveFile, resolvePrefix } from "#src/io/files/output-path.js";
import { parseAddress } from "#src/io/http/download.js";
import { parseJson } from "#src/io/json/lossless.js";
import { pythonText } from "#src/io/python-text.js";
import { float, int, seed, text } from "#src/nodes/inputs.js";
import { convertInput } from "#src/nodes/values.js";
import { checkTemplate, prefixesOf } from "#src/render/batch/names.js";
import { fillGraph } from "#src/render/fill/fill.js";
import { inputsOfKey } from "#src/render/fill/targets.js";
import { sweepAxis } from "#src/render/items/axes.js";
import { CsvParser } from "#src/render/items/csv.js";
import { createGraphKeys, createItemKeys } from "#src/render/items/graph-keys.js";
import type { ItemParser } from "#src/render/items/item.js";
import { LineParser, readObject, readPrompt } from "#src/render/items/lines.js";
import { parseSeeds } from "#src/render/items/seeds.js";
import { redactMetadata } from "#src/render/redact.js";
import { mismatchOf } from "#src/render/schema/property.js";
import { readGraph } from "#src/render/source.js";
import { fillsOf } from "#src/service/agent/message.js";
import { createTokens } from "#src/service/hooks/http/access/token.js";
import { addressKey } from "#src/service/hooks/http/gate.js";
import { cpuMsSince } from "../helpers/cpu-time.js";
import { fakeClip } from "../helpers/graph/fake-clip.js";
import { bestMs } from "../helpers/regexp/regexp-attacks.js";

const LIMIT_MS = 50;
const CHARACTERS = 100_000;
/** Files and turns of the event loop take their own time. */
const ASYNC_LIMIT_MS = 2000;

const parameters = [{ key: "message", isRequired: true, property: { title: "message" } }];
const definitionOf = (key: string) => registry.get(key);
const graphOf = (value: string) => ({ "1": { class_type: "SaveImage", inputs: { filename_prefix: value } } });
const keys = createGraphKeys(graphOf("x"), { registry });
const at = { input: "x" };
const tokens = createTokens("secret");
const clip = fakeClip("l");
const now = new Date(0);

/** Everything that reads text which others wrote; what it throws does not matter here. */
const READERS: Readonly<Record<string, (text: string) => unknown>> = {
  "fillGraph, a text": (it) => fillGraph(graphOf(it), {}, definitionOf),
  "fillGraph, a text and a value": (it) => fillGraph(graphOf(`{{x}}${it}`), { x: "y" }, definitionOf),
  "fillGraph, a key": (it) => fillGraph(graphOf("x"), { [it]: 1 }, definitionOf),
  "inputsOfKey, a key": (it) => inputsOfKey(graphOf("x"), `1.${it}`, definitionOf),
  "redact, a key": (it) => redactMetadata({ prompt: graphOf("x"), extraPnginfo: {} }, [it], definitionOf),
  "names of batches": (it) => [prefixesOf(graphOf(it)), checkTemplate(it)],
  FLOAT: (it) => convertInput(float(), it, at),
  INT: (it) => convertInput(int(), it, at),
  "a seed": (it) => convertInput(seed(), it, at),
  STRING: (it) => convertInput(text(), it, at),
  pythonFloat: pythonFloat,
  pythonText: (it) => pythonText([it]),
  parsePrompt: parsePrompt,
  parseA1111: parseA1111,
  scheduleTexts: (it) => scheduleTexts(it, 20),
  takeTimestep: (it) => takeTimestep(`${it}\n${it}`.slice(-CHARACTERS)),
  "tokenizePrompt @long": (it) => tokenizePrompt(it, clip.encoders[0]!),
  "the tokenizer of CLIP @long": tokenizeClip,
  "tokenGroups @long": (it) => tokenGroups(it, { ...clip.encoders[0]!, embedding: (rest) => ({ ids: [], rest }) }),
  "nearest names": (it) => nearest(it, [it, `a/${it}`]),
  "the tokenizer of the preview @long": (it) => previewClip("l").encoders[0]!.tokenize(it),
  parseJson: (it) => parseJson(it),
  readGraph: (it) => parseJson(readGraph(`{${it}`).graph as string),
  parseSeeds: parseSeeds,
  sweepAxis: (it) => sweepAxis(`1.filename_prefix=${it}`, keys),
  resolvePrefix: (it) => resolvePrefix("/out", it),
  resolveFile: (it) => resolveFile("/out", it, it),
  expandPrefix: (it) => expandPrefix(it, { width: 1, height: 1 }, now),
  "token in a header": (it) => tokens.identify(["Authorization", it]),
  "bearer token in a header": (it) => tokens.identify(["Authorization", `Bearer ${it}`]),
  addressKey: addressKey,
  dataBytes: (it) => dataBytes(`data:${it};base64,${it}`, "x"),
  parseAddress: (it) => parseAddress(`https://${it}`, "x"),
  givenBytes: (it) => givenBytes({ a: new Uint8Array(1) }, it),
  "message of a hook": (it) => fillsOf(it, parameters),
  "message of a hook after an event": (it) => fillsOf(`System event: ${it}`, parameters),
  "number in a message": (it) => mismatchOf({ type: "number" }, it),
  closest: (it) => closest(it, ["text", "image", it]),
  describe: describeValue,
};

const UNITS = [
  ..." {}()[]:.,|%/\\\"'=+-_09xéA\n\r\t\u00a0\u0663\ud800;!<",
  ...'{{ |}}|{{x|{ |(a|a)|(a:1|[a:|[a:b:|:1|:1)|[(|\\(|BREAK |TIMESTEP|TIMESTEP:|0.|1_|.0|e1|%width|../|//|\r\n|""|\\u0030'.split(
    "|",
  ),
  ...'":,[|{"a":[|[[|System event: |1..2,|, |bearer |a | embedding:x,|embedding:'.split("|"),
];

/** Makes a text of a length from each piece, between ends that may spoil what they begin. */
function* hostileTexts(): Generator<(characters: number) => string> {
  for (const unit of UNITS) {
    for (const before of ["", "{{", "(", "x", "1"]) {
      for (const after of ["", "x", ")", "]", "}}"]) {
        yield (characters) => before + unit.repeat(Math.ceil(characters / unit.length)) + after;
      }
    }
  }
}

/** Cubic time shows in the first, most quadratic time in the second: only what is suspect is tried at full length. */
const TINY = { characters: 300, limitMs: 2 };
const SHORT = { characters: 5000, limitMs: 1 };
/** Linear time is at most this multiple of the lengths' ratio, also if it makes the collector of garbage work. */
const SUSPECT = 1.5;
/** Between linear time (1) and quadratic time (20). */
const QUADRATIC = 5;

describe("hostile texts", () => {
  for (const [name, read] of Object.entries(READERS)) {
    it(`do not keep ${name} busy`, () => {
      for (const textOf of hostileTexts()) {
        const timeOf = (characters: number, enoughMs: number) => msOf(read, textOf(characters), enoughMs);
        const shown = JSON.stringify(textOf(12));
        assert.ok(timeOf(TINY.characters, TINY.limitMs) <= TINY.limitMs, `${shown}, to ${TINY.characters} characters`);
        const shortMs = timeOf(SHORT.characters, SHORT.limitMs);
        if (shortMs <= SHORT.limitMs) continue;
        if (shortMs <= SUSPECT * (SHORT.characters / TINY.characters) * timeOf(TINY.characters, 0)) continue;
        const isLinear = () => {
          const most = QUADRATIC * (CHARACTERS / SHORT.characters) * timeOf(SHORT.characters, 0);
          return timeOf(CHARACTERS, LIMIT_MS) <= Math.max(LIMIT_MS, most);
        };
        // neighbours of a virtual machine take time too; quadratic time shows each time
        assert.ok(isLinear() || isLinear() || isLinear(), `${shown}, repeated to ${CHARACTERS} characters`);
      }
    });
  }
});

describe("hostile files and prompts @long", () => {
  let folder: string;
  before(() => {
    folder = mkdtempSync(join(tmpdir(), "latentkit-hostile-"));
  });
  after(() => rmSync(folder, { recursive: true, force: true }));

  const csv = () => new CsvParser("items", createItemKeys(keys));
  const objects = () => new LineParser("items", createItemKeys(keys), readObject);
  const prompts = () => new LineParser("items", createItemKeys(keys), readPrompt);
  const parse = async (open: () => ItemParser, content: string): Promise<void> => {
    const parser = open();
    const bytes = Buffer.from(content);
    const size = 1 << 16;
    for (let at = 0; at < bytes.length; at += size) await parser.push(bytes.subarray(at, at + size), []);
    await parser.push(undefined, []);
  };
  const ASYNC_READERS: Readonly<Record<string, (text: string) => Promise<unknown>>> = {
    encodePrompt: (it) => encodePrompt(clip, it),
    "encodePrompt in the A1111 style": (it) => encodePrompt(clip, it, { a1111PromptStyle: true, steps: 20 }),
    CsvParser: (it) => parse(csv, `1.filename_prefix\n${it}`),
    "CsvParser, the header": (it) => parse(csv, it),
    readInputFile: (it) => readInputFile({ folder, name: it }),
    "LineParser, JSON": (it) => parse(objects, it),
    "LineParser, a prompt": (it) => parse(prompts, it),
    "LineParser, a key": (it) => parse(objects, JSON.stringify({ [it]: 1 })),
  };
  for (const [name, work] of Object.entries(ASYNC_READERS)) {
    it(`do not keep ${name} busy`, async () => {
      for (const unit of UNITS) {
        const text = `x${unit.repeat(Math.ceil(CHARACTERS / unit.length))}x`;
        const start = process.cpuUsage();
        await work(text).catch(() => {});
        const ms = cpuMsSince(start);
        assert.ok(ms <= ASYNC_LIMIT_MS, `${JSON.stringify(unit)}: ${ms} ms`);
      }
    });
  }
});

function msOf(read: (text: string) => unknown, text: string, enoughMs: number): number {
  return bestMs(() => {
    try {
      read(text);
    } catch {
      // refused, and soon
    }
  }, enoughMs);
}
