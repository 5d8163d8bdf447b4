import { addAbortSignal } from "node:stream";
import { loadZod } from "../../../../base/lazy-packages.js";
import type { OpenedFile } from "../../files/file-store.js";
import { openLocalFile } from "../../files/local-files.js";
import { HookError } from "../../hook-error.js";
import { clientSignal } from "../../http/body.js";
import type { Call } from "../../http/call.js";
import type { HookContext } from "../../http/context.js";
import { sendBytes } from "../../http/responses.js";
import type { Prepared } from "../../work-threads.js";
import type { AssetFiles } from "../assets/asset-files.js";
import { sendContent } from "../assets/send-content.js";
import { contentTypeOf } from "../content-type.js";
import type { ClassicRoute } from "./classic-route.js";
import { checkFolder, type FileAddress, FOLDERS, type InputNames, isAddress, type NamedFile } from "./input-names.js";
import type { PictureDone, Pictures } from "./pictures/pictures.js";
import { CHANNELS, type ViewWork } from "./pictures/view-picture.js";

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
    const address = addressOf(query);
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
    if (channels !== "rgba")
      throw new HookError("invalid_request", "channel: expected a picture of at most 16 megapixels");
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

/** The address in a query. Fails with 400 where it is missing or leaves its folder. */
function addressOf(query: URLSearchParams): FileAddress {
  const filename = query.get("filename") ?? "";
  const type = query.get("type") ?? "output";
  const subfolder = (query.get("subfolder") ?? "").replace(/\/$/, "");
  checkFolder(type);
  if (isAddress(subfolder, filename)) return { type, subfolder, filename };
  throw new HookError("invalid_request", "filename and subfolder: expected a name and a folder without . and ..");
}

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
