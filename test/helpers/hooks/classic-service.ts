import assert from "node:assert/strict";
import { once } from "node:events";
import { join } from "node:path";
import { createPreviewHost } from "latentkit";
import { createGraphAgent, type FileStore } from "latentkit/hooks";
import WebSocket from "ws";
import type { Clock } from "#src/service/hooks/clock.js";
import { temporaryFolder } from "../folders.js";
import { bearer, type RunningService, serviceStarter, until } from "./hook-service.js";

/** Samples a little picture. */
export const picture = (seed: unknown, steps = 4) => ({
  4: { class_type: "CheckpointLoaderSimple", inputs: { ckpt_name: "preview-sd15.safetensors" } },
  5: { class_type: "EmptyLatentImage", inputs: { width: 64, height: 64, batch_size: 1 } },
  6: { class_type: "CLIPTextEncode", inputs: { text: "a fox", clip: ["4", 1] } },
  3: {
    class_type: "KSampler",
    inputs: {
      seed,
      steps,
      cfg: 7,
      sampler_name: "euler",
      scheduler: "normal",
      denoise: 1,
      model: ["4", 0],
      positive: ["6", 0],
      negative: ["6", 0],
      latent_image: ["5", 0],
    },
  },
  8: { class_type: "VAEDecode", inputs: { samples: ["3", 0], vae: ["4", 2] } },
  9: { class_type: "SaveImage", inputs: { images: ["8", 0], filename_prefix: "fox" } },
});

/** Saves a picture of one colour, faster than a response can arrive. */
export const quick = (color = 255) => ({
  1: { class_type: "EmptyImage", inputs: { width: 8, height: 8, batch_size: 1, color } },
  9: { class_type: "SaveImage", inputs: { images: ["1", 0], filename_prefix: "quick" } },
});

/** Copies an input image. */
export const copyOf = (image: string) => ({
  1: { class_type: "LoadImage", inputs: { image } },
  9: { class_type: "SaveImage", inputs: { images: ["1", 0], filename_prefix: "copy" } },
});

/** Fails in node 9, which only learns while it runs where it would write. */
export const failing = {
  1: { class_type: "PrimitiveString", inputs: { value: "../.." } },
  9: {
    class_type: "ext saveTextLazy",
    inputs: { text: "x", output_file_path: ["1", 0], file_name: "x", file_extension: "txt", overwrite: true },
  },
};

/** Samples for minutes. */
export const endless = () => picture(1, 10_000);

/** Services with ComfyUI's classic API that start within a test and stop after it. Call inside `describe`. */
export function classicStarter(): (options?: {
  readonly web?: object;
  readonly limits?: object;
  readonly inThread?: boolean;
  readonly previews?: boolean;
  readonly clock?: Clock;
  readonly files?: FileStore;
}) => Promise<RunningService> {
  const folder = temporaryFolder();
  const start = serviceStarter();
  const agents: { close(): Promise<void> }[] = [];
  afterEach(async () => {
    for (const agent of agents.splice(0)) await agent.close();
  });
  return async ({ web = {}, limits = {}, inThread = false, previews, clock, files } = {}) => {
    const host = inThread ? undefined : createPreviewHost();
    const agent = createGraphAgent({ graph: quick(), outputDir: join(folder(), "out"), threads: 1, host, previews });
    agents.push(agent);
    return start({
      agent,
      ...(clock && { clock }),
      ...(files && { files }),
      config: { comfy_classic: "token", ...web, limits },
    });
  };
}

export interface Message {
  readonly type: string;
  readonly data: Record<string, unknown>;
}

/** Entry of the history. */
export interface Entry {
  readonly prompt: [number, string, object, object, string[]];
  readonly outputs: Record<string, { images?: { filename: string; subfolder: string; type: string }[] }>;
  readonly status: { status_str: string; completed: boolean; messages: [string, object][] };
}

/** Starts a prompt. */
export async function submit({ post }: RunningService, prompt: object, more: object = {}) {
  const response = await post("/prompt", { prompt, ...more });
  assert.equal(response.status, 200, await response.clone().text());
  return (await response.json()) as { prompt_id: string; number: number; node_errors: object };
}

/** Waits for a prompt's entry of the history. */
export async function ended({ get }: RunningService, id: string): Promise<Entry> {
  let entry: Entry | undefined;
  await until(async () => {
    entry = ((await (await get(`/history/${id}`)).json()) as Record<string, Entry>)[id];
    return entry !== undefined;
  }, "the entry of the history");
  return entry!;
}

/** Path of the picture of node 9. */
export const viewOf = (entry: Entry, more: Record<string, string> = {}): string =>
  `/view?${new URLSearchParams({ ...entry.outputs["9"]!.images![0]!, ...more })}`;

/** Opens a WebSocket, and collects its messages. */
export async function socketTo({ port }: RunningService, path = "/ws?clientId=me", headers: object = bearer) {
  const socket = new WebSocket(`ws://127.0.0.1:${port}${path}`, { headers: { ...headers } });
  const messages: Message[] = [];
  socket.on("message", (data, isBinary) => {
    if (!isBinary) messages.push(JSON.parse(String(data)) as Message);
  });
  await once(socket, "open");
  return { socket, messages };
}

/** Status with which a WebSocket is refused. */
export async function refusedSocket({ port }: RunningService, path: string, headers: object): Promise<number> {
  const socket = new WebSocket(`ws://127.0.0.1:${port}${path}`, { headers: { ...headers } });
  socket.on("error", () => undefined);
  const [, response] = (await once(socket, "unexpected-response")) as [unknown, { statusCode: number }];
  socket.terminate();
  return response.statusCode;
}
