import { extname } from "node:path";
import { loadZod } from "../../../../base/lazy-packages.js";
import { HookError } from "../../hook-error.js";
import { arrivalLimits } from "../../http/arrival.js";
import { clientSignal } from "../../http/body.js";
import type { Call } from "../../http/call.js";
import type { HookContext } from "../../http/context.js";
import { sendJson } from "../../http/responses.js";
import type { Asset } from "../assets/asset-files.js";
import { readParts } from "../assets/multipart.js";
import type { ComfyParts } from "../comfy-parts.js";
import { contentTypeOf } from "../content-type.js";
import type { ClassicRoute } from "./classic-route.js";
import { checkFolder, type FileAddress, FOLDERS, type InputNames, isAddress } from "./input-names.js";
import type { Pictures } from "./pictures/pictures.js";
import { UploadForm } from "./upload-form.js";

/** Most numbers that a name is tried with. */
const MOST_NUMBERS = 1000;

/** The routes of uploads. */
export function uploadRoutes(
  context: HookContext,
  { assets, keepOutput }: Pick<ComfyParts, "assets" | "keepOutput">,
  { names, pictures }: { readonly names: InputNames; readonly pictures: Pictures },
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
      const picture = await masked(call, original, hash);
      respond(call, await inTurn(() => put(address, picture, isTrue(form.field("overwrite")))));
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
  const masked = async ({ res }: Call, original: string, mask: string): Promise<string> => {
    const paths = { original: await pathOf(original, "original_ref"), mask: await pathOf(mask, "image") };
    const done = await pictures.run(async () => ({ value: { task: "mask", ...paths } }), clientSignal(res));
    if ("refusal" in done) throw new HookError("invalid_request", done.refusal);
    const upload = await assets.begin();
    try {
      await upload.write(done.bytes);
      return (await upload.commit(undefined)).hash;
    } finally {
      await upload.discard();
    }
  };

  const pathOf = async (hash: Asset["hash"], field: string): Promise<string> => {
    const path = await assets.pathOf(hash);
    if (path === undefined) throw new HookError("not_found", `${field}: no such file`);
    return path;
  };

  const { z } = loadZod();
  const text = z.string().optional();
  const fields = { image: z.string(), subfolder: text, type: z.enum(FOLDERS).optional(), overwrite: text };
  const stored = {
    method: "POST",
    responses: { 200: { json: z.object({ name: z.string(), subfolder: z.string(), type: z.string() }) } },
    refusals: ["not_found", "storage_full", "rate_limited", "files_unavailable"],
  } as const;
  const type = "multipart/form-data";
  return [
    {
      name: "upload_image",
      path: "/upload/image",
      summary: "Upload a file for LoadImage under its name",
      body: { schema: z.object(fields), type },
      ...stored,
      handle: uploadImage,
    },
    {
      name: "upload_mask",
      path: "/upload/mask",
      summary: "Upload a mask, whose alpha is put on the picture of `original_ref`",
      body: { schema: z.object({ ...fields, original_ref: z.string() }), type },
      ...stored,
      handle: uploadMask,
    },
  ];
}

const isTrue = (text: string | undefined): boolean => text === "true" || text === "1";

function addressOf(form: UploadForm): FileAddress {
  const type = form.field("type") || "input";
  const subfolder = (form.field("subfolder") ?? "").replace(/\/$/, "");
  // some clients send the whole path of the file on their machine
  const filename = (form.fileName ?? "").replace(/^.*[/\\]/s, "");
  checkFolder(type);
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
