import { loadZod } from "../../../base/lazy.js";
import { type OpenedFile, openLocalFile } from "../files/file-store.js";
import { HookError } from "../hook-error.js";
import { arrivalLimits, readJsonBody } from "../http/body.js";
import type { Call } from "../http/call.js";
import type { HookContext } from "../http/context.js";
import { parseBody } from "../http/request-schemas.js";
import { sendJson } from "../http/responses.js";
import { contentTypeOf, sendContent } from "../http/routes/send-file.js";
import type { Asset } from "./asset-files.js";
import type { ComfyParts, ComfyRoute } from "./comfy-parts.js";
import { type ComfyBody, isoTime } from "./jobs.js";
import { type FormKind, readParts, UploadForm } from "./multipart.js";

const KEEP = { least: 60, most: 604_800 };
const HASH = /^blake3:[0-9a-f]{64}$/;
const MOST_PATH_CHARACTERS = 1024;
const MOST_TAGS = 32;
const KEEP_FAULT = `expected ${KEEP.least} to ${KEEP.most}`;
const PATH_FAULT = `expected at most ${MOST_PATH_CHARACTERS} printable characters`;
const FORM: FormKind = {
  file: "file",
  isFileLast: true,
  fields: ["content_type", "file_path", "expected_hash", "expires_in", "tags"],
};
/** `type/subtype` without parameters. */
const CONTENT_TYPE = /^[\w.+-]{1,100}\/[\w.+-]{1,100}$/;

/** The routes of assets: uploads, and the outputs of jobs. */
export function assetRoutes(context: HookContext, parts: ComfyParts): ComfyRoute[] {
  const { jobs, assets, bodies } = parts;
  const { limits } = context.config;
  const arrival = arrivalLimits(limits, context.clock);

  const assetJson = (call: Call, asset: Asset, isNew?: boolean): ComfyBody<"asset"> => ({
    id: asset.id,
    hash: asset.hash,
    size_bytes: asset.size,
    content_type: asset.contentType,
    file_path: asset.filePath,
    ...(isNew !== undefined && { created_new: isNew }),
    created_at: isoTime(asset.createdAt),
    url: jobs.contentUrl(call, asset.id, asset.expiresAt),
    url_expires_at: isoTime(asset.expiresAt),
    expires_at: isoTime(asset.expiresAt),
    job_id: null,
  });
  const keepMs = (seconds: number | undefined) => Math.max((seconds ?? 0) * 1000, limits.retention_hours * 3600_000);

  const upload = async (call: Call) => {
    const { req, res } = call;
    const form = new UploadForm(assets, limits.upload_bytes, FORM);
    try {
      await readParts(req, res, form, { maxBytes: limits.upload_bytes, ...arrival });
      const contentType = readContentType(form.field("content_type"));
      const filePath = readFilePath(form.field("file_path"));
      const seconds = readSeconds(form.field("expires_in"));
      const tags = form.all("tags");
      if (tags.length > MOST_TAGS) throw new HookError("invalid_request", `tags: expected at most ${MOST_TAGS}`);
      if (form.upload === undefined) throw new HookError("invalid_workflow", 'the form has no "file" part');
      const { hash, isNew } = await form.upload.commit(form.field("expected_hash"));
      const asset = await assets.add({ hash, contentType, filePath, tags, keepMs: keepMs(seconds) });
      sendJson(req, res, { status: isNew ? 201 : 200, body: assetJson(call, asset, isNew) });
    } finally {
      await form.upload?.discard();
    }
  };

  const { z } = loadZod();
  const fromHashBody = z.object({
    hash: z.string("expected a string").regex(HASH, "expected blake3: and 64 hexadecimal digits"),
    file_path: z.string("expected a string").max(MOST_PATH_CHARACTERS, PATH_FAULT).nullish(),
    tags: z.array(z.string().max(200)).max(MOST_TAGS).nullish(),
    expires_in: z.int("expected an integer").min(KEEP.least, KEEP_FAULT).max(KEEP.most, KEEP_FAULT).nullish(),
  });
  const fromHash = async (call: Call) => {
    const { req, res } = call;
    const json = await readJsonBody(req, res, { maxBytes: limits.body_bytes, ...arrival });
    const body = parseBody(fromHashBody, json);
    const filePath = readFilePath(body.file_path ?? undefined);
    const contentType = contentTypeOf(filePath ?? "");
    const named = { hash: body.hash, contentType, filePath, tags: body.tags ?? [] };
    const asset = await assets.add({ ...named, keepMs: keepMs(body.expires_in ?? undefined) });
    sendJson(req, res, { status: 201, body: assetJson(call, asset, false) });
  };

  const byHash = async ({ req, res, params }: Call) => {
    const size = await assets.sizeOf(params.hash!);
    if (size === undefined) throw new HookError("blob_not_found");
    sendJson(req, res, { status: 200, body: { hash: params.hash, size_bytes: size } });
  };

  const existing = async (id: string): Promise<Asset> => {
    const asset = await assets.find(id);
    if (asset === undefined) throw new HookError("asset_not_found");
    return asset;
  };

  const look = async (call: Call) => {
    const id = call.params.id!;
    const found = await jobs.findOutput(id);
    if (found === undefined) {
      return sendJson(call.req, call.res, { status: 200, body: assetJson(call, await existing(id)) });
    }
    const output = await jobs.outputJson(call, found.run, found.output);
    if (output === undefined) throw new HookError("asset_not_found");
    const { createdAt } = found.run;
    const times = { created_at: isoTime(createdAt), expires_at: isoTime(jobs.expiresAt(found.run)) };
    sendJson(call.req, call.res, { status: 200, body: { ...output, file_path: found.file.name, ...times } });
  };

  const remove = async ({ res, params }: Call) => {
    const id = params.id!;
    if ((await jobs.findOutput(id)) !== undefined) throw new HookError("asset_in_use");
    await assets.remove((await existing(id)).id);
    res.writeHead(204).end();
  };

  const content = async (call: Call) => {
    const id = call.params.id!;
    const { file, contentType } = await open(id, call.req.method === "HEAD");
    try {
      await sendContent(call, file, contentType);
    } finally {
      await file.close();
    }
  };
  const open = async (id: string, headOnly: boolean): Promise<{ file: OpenedFile; contentType: string }> => {
    const found = await jobs.findOutput(id);
    if (found !== undefined) {
      const contentType = found.file.contentType ?? contentTypeOf(found.file.name);
      return { file: await context.files.open(found.file, { headOnly }), contentType };
    }
    const { hash, contentType } = await existing(id);
    const path = await assets.pathOf(hash);
    if (path === undefined) throw new HookError("asset_not_found");
    return { file: await openLocalFile(path), contentType };
  };

  const { asset, output } = bodies;
  const time = z.iso.datetime();
  const unknown = ["asset_not_found", "files_unavailable"] as const;
  return [
    {
      name: "v2_assets",
      paths: ["/api/v2/assets"],
      method: "POST",
      summary: "Upload a file; equal files are stored once",
      body: {
        schema: z.object({
          file: z.string().meta({ description: "The bytes, as the last part." }),
          content_type: z.string().optional(),
          file_path: z.string().optional().meta({ description: "Returned as sent; not a path on the server." }),
          expires_in: z.int().min(KEEP.least).max(KEEP.most).optional().meta({ description: "Seconds." }),
          expected_hash: z.string().optional(),
          tags: z.array(z.string()).optional(),
        }),
        type: "multipart/form-data",
      },
      responses: {
        200: { description: "The bytes were there.", json: asset },
        201: { description: "The bytes are new.", json: asset },
      },
      refusals: ["invalid_workflow", "hash_mismatch", "storage_full", "files_unavailable"],
      handle: upload,
    },
    {
      name: "v2_from_hash",
      paths: ["/api/v2/assets/from-hash"],
      method: "POST",
      summary: "Create an asset from an uploaded hash",
      body: { schema: fromHashBody },
      responses: { 201: { json: asset } },
      refusals: ["blob_not_found", "storage_full", "files_unavailable"],
      handle: fromHash,
    },
    {
      name: "v2_by_hash",
      paths: ["/api/v2/assets/by-hash/:hash"],
      method: "GET",
      summary: "Check whether a hash is already uploaded",
      responses: { 200: { json: z.object({ hash: z.string(), size_bytes: z.int() }) } },
      refusals: ["blob_not_found", "files_unavailable"],
      handle: byHash,
    },
    {
      name: "v2_asset",
      paths: ["/api/v2/assets/:id"],
      method: "GET",
      summary: "Show an upload or an output",
      responses: {
        200: {
          json: z.union([asset, output.extend({ file_path: z.string(), created_at: time, expires_at: time })]),
        },
      },
      refusals: unknown,
      handle: look,
    },
    {
      name: "v2_asset",
      operation: "v2_remove_asset",
      paths: ["/api/v2/assets/:id"],
      method: "DELETE",
      summary: "Remove an upload",
      responses: { 204: {} },
      refusals: [...unknown, "asset_in_use"],
      handle: remove,
    },
    {
      name: "v2_content",
      paths: ["/api/v2/assets/:id/content"],
      access: "asset",
      method: "GET",
      summary: "Send the bytes of an asset, or a range of them",
      query: context.parameters.signed,
      headers: { Range: z.string().optional() },
      responses: {
        200: { type: "application/octet-stream" },
        206: { type: "application/octet-stream" },
      },
      refusals: [...unknown, "range_not_satisfiable"],
      handle: content,
    },
  ];
}

function readContentType(text: string | undefined): string {
  if (text === undefined) return "application/octet-stream";
  const type = text.split(";", 1)[0]!.trim().toLowerCase();
  if (!CONTENT_TYPE.test(type)) throw new HookError("invalid_request", "content_type: expected type/subtype");
  return type;
}

function readFilePath(text: string | undefined): string | null {
  if (text === undefined || text === "") return null;
  // never a path on this machine: only told back
  if (text.length > MOST_PATH_CHARACTERS || /\p{Cc}/u.test(text)) {
    throw new HookError("invalid_request", `file_path: ${PATH_FAULT}`);
  }
  return text;
}

function readSeconds(text: string | undefined): number | undefined {
  if (text === undefined) return undefined;
  const seconds = /^\d{1,9}$/.test(text) ? Number(text) : 0;
  if (seconds >= KEEP.least && seconds <= KEEP.most) return seconds;
  throw new HookError("invalid_request", `expires_in: ${KEEP_FAULT}`);
}
