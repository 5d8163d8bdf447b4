import { LatentkitError } from "../../../../base/errors.js";
import { decodePicture } from "../../../../io/pictures/decode.js";
import { encodeBySharp } from "../../../../io/pictures/encode.js";
import { encodePng } from "../../../../io/png/png.js";
import type { RawImage } from "../../../../io/raw-image.js";
import type { OpenedFile } from "../../files/file-store.js";
import { openLocalFile } from "../../files/local-files.js";
import { HookError } from "../../hook-error.js";
import type { Call } from "../../http/call.js";
import type { HookContext } from "../../http/context.js";
import { sendBytes } from "../../http/responses.js";
import type { AssetFiles } from "../assets/asset-files.js";
import { sendContent } from "../assets/send-content.js";
import { contentTypeOf } from "../content-type.js";
import type { ClassicRoute } from "./classic-route.js";
import { type FileAddress, type InputNames, isAddress, type NamedFile } from "./input-names.js";

/** Largest file and picture that are converted; larger ones are sent as they are, or refused for a channel. */
const MOST_BYTES = 64 * 1024 * 1024;
const MOST_PIXELS = 2 ** 24;
const CHANNELS = ["rgba", "rgb", "a"] as const;
const PREVIEW = /^(webp|jpeg)(?:;(\d{1,3}))?$/;
/** Types that a browser would run as a page of this service. */
const ACTIVE = /^(text\/(html|css|javascript)|application\/(javascript|xhtml\+xml|xml)|image\/svg\+xml|text\/xml)$/;

/** `GET /view`: a file of a prompt or an upload, as it is, as a preview, or some of its channels. */
export function viewRoute(
  context: HookContext,
  { assets }: { readonly assets: AssetFiles },
  names: InputNames,
): ClassicRoute {
  let turn: Promise<unknown> = Promise.resolve();
  /** Runs conversions one after the other: each holds a whole picture. */
  const inTurn = <T>(work: () => Promise<T>): Promise<T> => {
    const result = turn.then(work);
    turn = result.catch(() => undefined);
    return result;
  };

  const view = async (call: Call) => {
    const { req, res, query } = call;
    const address = addressOf(query);
    const channels = query.get("channel") ?? "rgba";
    const preview = PREVIEW.exec(query.get("preview") ?? "");
    if (!CHANNELS.some((name) => name === channels)) {
      throw new HookError("invalid_request", `channel: expected ${CHANNELS.join(", ")}`);
    }
    const found = await names.find(address);
    if (found === undefined) throw new HookError("not_found", "no such file");
    const { file, contentType } = await open(found, address);
    try {
      res.setHeader("Content-Disposition", `filename="${asciiName(address.filename)}"`);
      const isPicture = contentType.startsWith("image/") && file.size <= MOST_BYTES;
      if (isPicture && (preview !== null || channels !== "rgba")) {
        const picture = await inTurn(() => converted(file, channels, preview));
        if (picture !== undefined) return sendBytes(req, res, { status: 200, ...picture });
      }
      if (channels !== "rgba")
        throw new HookError("invalid_request", "channel: expected a picture of at most 16 megapixels");
      await sendContent(call, file, ACTIVE.test(contentType) ? "application/octet-stream" : contentType);
    } finally {
      await file.close();
    }
  };

  const open = async (
    found: NamedFile,
    { filename }: FileAddress,
  ): Promise<{ file: OpenedFile; contentType: string }> => {
    const contentType = contentTypeOf(filename);
    if ("file" in found) return { file: await context.files.open(found.file, { headOnly: false }), contentType };
    const path = await assets.pathOf(found.asset.hash);
    if (path === undefined) throw new HookError("not_found", "no such file");
    return { file: await openLocalFile(path), contentType };
  };

  return { name: "view", path: "/view", handlers: { GET: view } };
}

/** The address in a query. Fails with 400 where it is missing or leaves its folder. */
function addressOf(query: URLSearchParams): FileAddress {
  const filename = query.get("filename") ?? "";
  const type = query.get("type") ?? "output";
  const subfolder = (query.get("subfolder") ?? "").replace(/\/$/, "");
  if (!["input", "output", "temp"].includes(type)) {
    throw new HookError("invalid_request", "type: expected input, output or temp");
  }
  if (isAddress(subfolder, filename)) return { type, subfolder, filename };
  throw new HookError("invalid_request", "filename and subfolder: expected a name and a folder without . and ..");
}

/** A picture with some of its channels, or smaller; undefined where it is too large, or nothing here reads or writes it. */
async function converted(
  file: OpenedFile,
  channels: string,
  preview: RegExpExecArray | null,
): Promise<{ bytes: Buffer; type: string } | undefined> {
  const chunks: Buffer[] = [];
  for await (const chunk of file.read() as AsyncIterable<Buffer>) chunks.push(chunk);
  try {
    const { data, width, height, channels: count } = await decodePicture(Buffer.concat(chunks), 1);
    if (width * height > MOST_PIXELS) return undefined;
    const image = pick({ width, height, channels: count, data: eightBits(data) }, channels);
    const type = preview?.[1] as "webp" | "jpeg" | undefined;
    if (type === undefined) return { bytes: await encodePng(image), type: "image/png" };
    const quality = Math.min(100, Math.max(1, Number(preview?.[2] ?? 90)));
    return { bytes: await encodeBySharp(image, type, { type, quality }, []), type: `image/${type}` };
  } catch (error) {
    // a damaged file, or one that needs a package that is not installed
    if (error instanceof LatentkitError) return undefined;
    throw error;
  }
}

const eightBits = (data: Uint8Array | Uint16Array): Uint8Array =>
  data instanceof Uint16Array ? Uint8Array.from(data, (sample) => sample >> 8) : data;

/** Colours alone, or alpha alone on black. */
function pick(image: RawImage, channels: string): RawImage {
  const { data, width, height, channels: count } = image;
  const hasAlpha = count === 2 || count === 4;
  if (channels === "rgba" || (channels === "rgb" && !hasAlpha)) return image;
  const pixels = width * height;
  const wanted = channels === "rgb" ? count - 1 : 4;
  const picked = new Uint8Array(pixels * wanted);
  for (let pixel = 0; pixel < pixels; pixel++) {
    if (channels === "rgb") for (let c = 0; c < wanted; c++) picked[pixel * wanted + c] = data[pixel * count + c]!;
    else picked[pixel * 4 + 3] = hasAlpha ? data[pixel * count + count - 1]! : 255;
  }
  return { data: picked, width, height, channels: wanted };
}

/** A name that a header can hold. */
const asciiName = (name: string): string => name.replace(/[^\x20-\x7e]|["\\]/g, "_");
