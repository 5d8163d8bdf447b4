import { extname } from "node:path";
import { addAbortSignal } from "node:stream";
import { loadZod } from "../../../../base/lazy.js";
import { type OpenedFile, openLocalFile } from "../../files/file-store.js";
import { HookError } from "../../hook-error.js";
import { arrivalLimits, clientSignal } from "../../http/body.js";
import type { Call } from "../../http/call.js";
import type { HookContext } from "../../http/context.js";
import { sendBytes, sendJson } from "../../http/responses.js";
import { contentTypeOf, sendContent } from "../../http/routes/send-file.js";
import type { Prepared } from "../../work-threads.js";
import type { Asset, AssetFiles } from "../asset-files.js";
import type { ClassicRoute, ComfyParts } from "../comfy-parts.js";
import { type FormKind, readParts, UploadForm } from "../multipart.js";
import { type FileAddress, FOLDERS, type InputNames, isAddress, type NamedFile } from "./input-names.js";
import { CHANNELS, type PictureDone, type Pictures, type ViewWork } from "./pictures/pictures.js";

const FORM: FormKind = {
  file: "image",
  isFileLast: false,
  fields: ["overwrite", "type", "subfolder", "original_ref", "originalRef"],
};
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
    throw new HookError("invalid_request", "image: too many files have this name: choose another");
  };

  /** Receives a file, makes of it what is to be stored, and puts that under the form's address. */
  const upload = async (call: Call, make: (form: UploadForm) => Promise<string>) => {
    const { req, res } = call;
    const form = new UploadForm(assets, limits.upload_bytes, FORM);
    try {
      await readParts(req, res, form, { maxBytes: limits.upload_bytes, ...arrivalLimits(limits, context.clock) });
      if (form.upload === undefined) throw new HookError("invalid_request", 'the form has no "image" part');
      const address = formAddress(form);
      const hash = await make(form);
      const overwrite = ["true", "1"].includes(form.field("overwrite") ?? "");
      const { filename: name, subfolder, type } = await inTurn(() => put(address, hash, overwrite));
      sendJson(req, res, { status: 200, body: { name, subfolder, type } });
    } finally {
      await form.upload?.discard();
    }
  };
  const uploadImage = (call: Call) => upload(call, async (form) => (await form.upload!.commit()).hash);
  const uploadMask = (call: Call) =>
    upload(call, async (form) => {
      const original = await hashOf(readReference(form.field("original_ref") ?? form.field("originalRef")));
      return masked(call, original, (await form.upload!.commit()).hash);
    });

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
    return assets.keep([done.bytes]);
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

function formAddress(form: UploadForm): FileAddress {
  // some clients send the whole path of the file on their machine
  const filename = (form.fileName ?? "").replace(/^.*[/\\]/s, "");
  const fault = 'image: expected a file name of at most 255 printable characters, and a subfolder without "." or ".."';
  return readAddress(form.field("type") || "input", form.field("subfolder"), filename, fault);
}

/** An address in one of the folders. Fails with invalid_request, and `fault` as its sentence. */
function readAddress(type: string, folder: string | null | undefined, filename: string, fault: string): FileAddress {
  const subfolder = (folder ?? "").replace(/\/$/, "");
  if (!FOLDERS.some((name) => name === type)) {
    throw new HookError("invalid_request", "type: expected input, output or temp");
  }
  if (!isAddress(subfolder, filename)) throw new HookError("invalid_request", fault);
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

/** Largest file that is converted; larger ones, and larger pictures, are sent as they are, or refused for a channel. */
const MOST_BYTES = 64 * 1024 * 1024;
const PREVIEW = /^(webp|jpeg)(?:;(\d{1,3}))?$/;
/** Types that a browser would run as a page of this service. */
const ACTIVE = /^(text\/(html|css|javascript)|application\/(javascript|xhtml\+xml|xml)|image\/svg\+xml|text\/xml)$/;

/** `GET /view`: a file of a prompt or an upload, as it is, as a preview, or some of its channels. */
export function viewRoute(
  context: HookContext,
  { assets }: { readonly assets: AssetFiles },
  { names, pictures }: { readonly names: InputNames; readonly pictures: Pictures },
): ClassicRoute {
  const view = async (call: Call) => {
    const { req, res, query } = call;
    const address = queryAddress(query);
    const { channels, preview } = wishOf(query);
    const found = await names.find(address);
    if (found === undefined) throw new HookError("not_found", "no such file");
    const disposition = `filename="${asciiName(address.filename)}"`;
    const contentType = contentTypeOf(address.filename);
    if (contentType.startsWith("image/") && (preview !== undefined || channels !== "rgba")) {
      const bytes = await converted(call, found, { channels, preview });
      const type = `image/${preview?.type ?? "png"}`;
      if (bytes !== undefined) {
        return sendBytes(req, res, { status: 200, headers: { "Content-Disposition": disposition }, bytes, type });
      }
    }
    if (channels !== "rgba") {
      const fault = "channel: the picture cannot be decoded or has more than 16 megapixels";
      throw new HookError("invalid_request", fault);
    }
    const file = await open(found);
    try {
      res.setHeader("Content-Disposition", disposition);
      await sendContent(call, file, ACTIVE.test(contentType) ? "application/octet-stream" : contentType);
    } finally {
      await file.close();
    }
  };

  /** A picture as it is wished; undefined where it is too large or cannot be converted. */
  const converted = async (call: Call, found: NamedFile, wish: Wish): Promise<Buffer | undefined> => {
    const prepare = async (signal: AbortSignal): Promise<Prepared<ViewWork, PictureDone>> => {
      const file = await open(found);
      try {
        if (file.size > MOST_BYTES) return { done: { refusal: undefined } };
        const bytes = await bytesOf(file, signal);
        return { value: { task: "view", file: bytes, ...wish }, moved: [bytes.buffer] };
      } finally {
        await file.close();
      }
    };
    const done = await pictures.run(prepare, clientSignal(call.res));
    return "bytes" in done ? Buffer.from(done.bytes.buffer) : undefined;
  };

  const open = async (found: NamedFile): Promise<OpenedFile> => {
    if ("file" in found) return context.files.open(found.file, { headOnly: false });
    const path = await assets.pathOf(found.asset.hash);
    if (path === undefined) throw new HookError("not_found", "no such file");
    return openLocalFile(path);
  };

  const { z } = loadZod();
  const text = z.string().optional();
  return {
    name: "view",
    path: "/view",
    method: "GET",
    summary:
      "Send a file of a prompt or an upload: as it is, as a preview (`webp;90`, `jpeg`), or some of its channels",
    query: {
      filename: z.string(),
      subfolder: text,
      type: z.enum(FOLDERS).optional(),
      preview: text,
      channel: z.enum(CHANNELS).optional(),
    },
    responses: { 200: { type: "application/octet-stream" } },
    refusals: ["invalid_request", "not_found", "rate_limited", "range_not_satisfiable", "files_unavailable"],
    handle: view,
  };
}

/** The address in a query. Fails with 400 if it is missing or leaves its folder. */
const queryAddress = (query: URLSearchParams): FileAddress =>
  readAddress(
    query.get("type") ?? "output",
    query.get("subfolder"),
    query.get("filename") ?? "",
    'filename and subfolder: expected a file name of at most 255 printable characters, and a folder without "." or ".."',
  );

type Wish = Pick<ViewWork, "channels" | "preview">;

/** Channels and format of a query. Fails with 400 for other channels; another format counts as none. */
function wishOf(query: URLSearchParams): Wish {
  const wished = query.get("channel") ?? "rgba";
  const channels = CHANNELS.find((name) => name === wished);
  if (channels === undefined) throw new HookError("invalid_request", `channel: expected ${CHANNELS.join(", ")}`);
  const [, type, quality = "90"] = PREVIEW.exec(query.get("preview") ?? "") ?? [];
  if (type === undefined) return { channels };
  return { channels, preview: { type: type as "webp" | "jpeg", quality: Math.min(100, Math.max(1, Number(quality))) } };
}

/** The bytes of a file, in memory that can move to a thread. */
async function bytesOf(file: OpenedFile, signal: AbortSignal): Promise<Uint8Array<ArrayBuffer>> {
  const bytes = new Uint8Array(file.size);
  let at = 0;
  for await (const chunk of addAbortSignal(signal, file.read()) as AsyncIterable<Buffer>) {
    // a store of files that tells another size
    if (at + chunk.length > bytes.length) throw new HookError("files_unavailable");
    bytes.set(chunk, at);
    at += chunk.length;
  }
  return bytes.subarray(0, at);
}

/** A name that a header can hold. */
const asciiName = (name: string): string => name.replace(/[^\x20-\x7e]|["\\]/g, "_");
