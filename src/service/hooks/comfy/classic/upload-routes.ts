import { readFile } from "node:fs/promises";
import { extname } from "node:path";
import { LatentkitError } from "../../../../base/errors.js";
import { decodePicture } from "../../../../io/pictures/decode.js";
import { type DecodedFrames, encodePng } from "../../../../io/png/png.js";
import { HookError } from "../../hook-error.js";
import { arrivalLimits } from "../../http/arrival.js";
import type { Call } from "../../http/call.js";
import type { HookContext } from "../../http/context.js";
import { sendJson } from "../../http/responses.js";
import type { Asset } from "../assets/asset-files.js";
import { readParts } from "../assets/multipart.js";
import type { ComfyParts } from "../comfy-parts.js";
import { contentTypeOf } from "../content-type.js";
import type { ClassicRoute } from "./classic-route.js";
import { type FileAddress, type InputNames, isAddress } from "./input-names.js";
import { UploadForm } from "./upload-form.js";

/** Most numbers that a name is tried with. */
const MOST_NUMBERS = 1000;
/** Largest picture that gets a mask. */
const MOST_PIXELS = 2 ** 24;

/** The routes of uploads. */
export function uploadRoutes(
  context: HookContext,
  { assets, keepOutput }: Pick<ComfyParts, "assets" | "keepOutput">,
  names: InputNames,
): ClassicRoute[] {
  const { limits } = context.config;
  let turn: Promise<unknown> = Promise.resolve();
  /** Runs one after the other: a name is looked up, then taken. */
  const inTurn = <T>(work: () => Promise<T>): Promise<T> => {
    const result = turn.then(work);
    turn = result.catch(() => undefined);
    return result;
  };

  /** Puts bytes under an address, or, where other bytes have it, under the next free name. Returns its address. */
  const put = async (address: FileAddress, hash: string, overwrite: boolean): Promise<FileAddress> => {
    for (let n = 0; n <= MOST_NUMBERS; n++) {
      const numbered = n === 0 ? address : { ...address, filename: numberedName(address.filename, n) };
      const taken = overwrite ? undefined : await names.upload(numbered);
      if (taken !== undefined && taken.hash !== hash) continue;
      await names.put(numbered, { hash, contentType: contentTypeOf(numbered.filename) });
      return numbered;
    }
    throw new HookError("invalid_request", "image: this name has been used too often, expected another one");
  };

  const receive = async ({ req, res }: Call): Promise<UploadForm> => {
    const form = new UploadForm(assets, limits.upload_bytes);
    try {
      await readParts(req, res, form, { maxBytes: limits.upload_bytes, ...arrivalLimits(limits, context.clock) });
      if (form.upload === undefined) throw new HookError("invalid_request", "the form has no part image");
      return form;
    } catch (error) {
      await form.upload?.discard();
      throw error;
    }
  };

  const respond = ({ req, res }: Call, { filename: name, subfolder, type }: FileAddress) =>
    sendJson(req, res, { status: 200, body: { name, subfolder, type } });

  const uploadImage = async (call: Call) => {
    const form = await receive(call);
    try {
      const address = addressOf(form);
      const { hash } = await form.upload!.commit(undefined);
      respond(call, await inTurn(() => put(address, hash, isTrue(form.field("overwrite")))));
    } finally {
      await form.upload!.discard();
    }
  };

  const uploadMask = async (call: Call) => {
    const form = await receive(call);
    try {
      const address = addressOf(form);
      const original = await hashOf(readReference(form.field("original_ref") ?? form.field("originalRef")));
      const { hash } = await form.upload!.commit(undefined);
      const hashes = await inTurn(() => masked(original, hash));
      respond(call, await inTurn(() => put(address, hashes, isTrue(form.field("overwrite")))));
    } finally {
      await form.upload!.discard();
    }
  };

  const hashOf = async (address: FileAddress): Promise<string> => {
    const found = await names.find(address);
    if (found === undefined) throw new HookError("not_found", "original_ref: no such file");
    return "asset" in found ? found.asset.hash : keepOutput(found.file);
  };

  /** Stores a picture with the alpha of another one. Returns its hash. */
  const masked = async (original: string, mask: string): Promise<string> => {
    const bytes = await encodePng(withAlphaOf(await decoded(original, "original_ref"), await decoded(mask, "image")));
    const upload = await assets.begin();
    try {
      await upload.write(bytes);
      return (await upload.commit(undefined)).hash;
    } finally {
      await upload.discard();
    }
  };

  const decoded = async (hash: Asset["hash"], field: string): Promise<DecodedFrames> => {
    const path = await assets.pathOf(hash);
    if (path === undefined) throw new HookError("not_found", `${field}: no such file`);
    try {
      const picture = await decodePicture(await readFile(path), 1);
      if (picture.width * picture.height <= MOST_PIXELS) return picture;
    } catch (error) {
      if (!(error instanceof LatentkitError)) throw error;
      throw new HookError("invalid_request", `${field}: ${error.message}`);
    }
    throw new HookError("invalid_request", `${field}: expected a picture of at most 16 megapixels`);
  };

  return [
    { name: "upload_image", path: "/upload/image", handlers: { POST: uploadImage } },
    { name: "upload_mask", path: "/upload/mask", handlers: { POST: uploadMask } },
  ];
}

const isTrue = (text: string | undefined): boolean => text === "true" || text === "1";

function addressOf(form: UploadForm): FileAddress {
  const type = form.field("type") || "input";
  const subfolder = (form.field("subfolder") ?? "").replace(/\/$/, "");
  // some clients send the whole path of the file on their machine
  const filename = (form.fileName ?? "").replace(/^.*[/\\]/s, "");
  if (!["input", "output", "temp"].includes(type)) {
    throw new HookError("invalid_request", "type: expected input, output or temp");
  }
  if (!isAddress(subfolder, filename)) {
    throw new HookError("invalid_request", "image: expected a file with a name, and a subfolder without . and ..");
  }
  return { type, subfolder, filename };
}

function readReference(text: string | undefined): FileAddress {
  try {
    const { filename, subfolder = "", type = "output" } = JSON.parse(text ?? "") as Record<string, unknown>;
    const isText = typeof filename === "string" && typeof subfolder === "string" && typeof type === "string";
    if (isText && isAddress(subfolder, filename)) return { filename, subfolder, type };
  } catch {
    // refused below
  }
  throw new HookError("invalid_request", "original_ref: expected JSON with filename, subfolder and type");
}

function numberedName(name: string, n: number): string {
  const extension = extname(name);
  return `${name.slice(0, name.length - extension.length)} (${n})${extension}`;
}

/** The colours of one picture and the alpha of another one of the same size, 8 bits. */
function withAlphaOf(original: DecodedFrames, mask: DecodedFrames) {
  const { width, height } = original;
  if (mask.width !== width || mask.height !== height) {
    const received = `${mask.width} x ${mask.height}`;
    throw new HookError(
      "invalid_request",
      `image: expected a mask of ${width} x ${height} pixels, received ${received}`,
    );
  }
  if (mask.channels !== 2 && mask.channels !== 4) {
    throw new HookError("invalid_request", "image: expected a picture with alpha, received one without");
  }
  const data = new Uint8Array(width * height * 4);
  const colours = original.channels >= 3 ? [0, 1, 2] : [0, 0, 0];
  const [shift, maskShift] = [original.bitDepth - 8, mask.bitDepth - 8];
  for (let pixel = 0; pixel < width * height; pixel++) {
    for (let c = 0; c < 3; c++) data[pixel * 4 + c] = original.data[pixel * original.channels + colours[c]!]! >> shift;
    data[pixel * 4 + 3] = mask.data[(pixel + 1) * mask.channels - 1]! >> maskShift;
  }
  return { data, width, height, channels: 4 };
}
