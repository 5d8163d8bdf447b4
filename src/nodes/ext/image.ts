import { inputError, LatentkitError } from "../../base/errors.js";
import { split } from "../../io/files/save-images.js";
import { encodeMultipart, type FormPart, type PostResponse, post } from "../../io/http/post.js";
import { pythonNumber } from "../../io/json/print.js";
import { decodePng, encodePng, imageTensor } from "../../io/png/png.js";
import { firstChannels } from "../../tensor/channels.js";
import { channelToMask } from "../../tensor/ops.js";
import type { Tensor } from "../../tensor/tensor.js";
import { defineNode, type NodeConfig } from "../define.js";
import { choice, float, image, int, text } from "../inputs.js";

const KEY = "ext remoteImageApi";
const DEFAULT_BASE_URL = "https://api.stability.ai";
const PATH = "v2beta/stable-image/generate/sd3";
const ASPECT_RATIOS = ["16:9", "1:1", "21:9", "2:3", "3:2", "4:5", "5:4", "9:16", "9:21"] as const;

/** Meaning of the status codes of the service. */
const MEANINGS: Readonly<Record<number, string>> = {
  400: "Bad Request",
  403: "ApiKey Forbidden",
  413: "Your request was larger than 10MiB.",
  429: "You have made more than 150 requests in 10 seconds.",
  500: "Internal Server Error",
};

export const remoteImageApi = defineNode({
  key: KEY,
  description: "Has a remote service generate an image from text, or from an image and text.",
  deprecated: true,
  inputs: {
    positive: text({ default: "", multiline: true, strict: true }),
    negative: text({ default: "", multiline: true, strict: true }),
    model: choice(["sd3", "sd3-turbo"]),
    aspect_ratio: choice(ASPECT_RATIOS),
    seed: int({ default: 0, min: 0, max: 4294967294 }),
    denoise: float({ default: 1, min: 0, max: 1 }),
    optional_image: image({ optional: true }),
  },
  outputs: { image: "IMAGE" },
  hidden: { unique_id: "UNIQUE_ID", extra_pnginfo: "EXTRA_PNGINFO" },
  reachesNetwork: true,
  usesKey: true,
  run: async (inputs, { config, fetch, signal, clock }) => {
    const key = keyOf(config);
    const url = urlOf(config);
    const { optional_image } = inputs;
    const png = optional_image === undefined ? undefined : await pngOf(optional_image);
    const parts: FormPart[] = [
      { name: "prompt", value: inputs.positive },
      { name: "mode", value: png === undefined ? "text-to-image" : "image-to-image" },
      { name: "model", value: inputs.model },
      { name: "seed", value: String(inputs.seed) },
      { name: "output_format", value: "png" },
      ...(inputs.model === "sd3" ? [{ name: "negative_prompt", value: inputs.negative }] : []),
      ...(png === undefined
        ? [{ name: "aspect_ratio", value: inputs.aspect_ratio }]
        : [
            { name: "strength", value: pythonNumber(inputs.denoise) },
            { name: "image", filename: "output.png", type: "image/png", bytes: png },
          ]),
    ];
    const { body, contentType } = encodeMultipart(parts);
    const authorization = /\S\s+\S/.test(key) ? key : `Bearer ${key}`;
    const headers = { accept: "application/json", authorization, "content-type": contentType };
    const response = await post({ url, headers, body, fetch, signal, clock });
    if (response.status !== 200) throw failed(refusal(response), key);
    return { image: await imageOf(response, key) };
  },
});

/** The first key of the configuration, else the environment's. */
function keyOf(config: NodeConfig): string {
  const configured = config.remote_image_api?.keys?.[0]?.key;
  const key = (configured ?? process.env.STABILITY_API_KEY ?? "").trim();
  if (key === "") {
    const message = `${KEY}: expected a key in remote_image_api.keys of the configuration or in STABILITY_API_KEY, received none.`;
    throw new LatentkitError("remote.no-key", message, { node: KEY });
  }
  // an HTTP library would quote an invalid header, and with it the key
  if (!/^[!-~]+(?:[ \t]+[!-~]+)*$/.test(key)) {
    throw new LatentkitError("remote.no-key", `${KEY}: expected a key of printable ASCII characters.`, { node: KEY });
  }
  return key;
}

function urlOf(config: NodeConfig): string {
  const base = config.remote_image_api?.base_url ?? DEFAULT_BASE_URL;
  const url = URL.canParse(base) ? new URL(base) : undefined;
  if (url === undefined || !/^https?:$/.test(url.protocol) || url.username !== "" || url.password !== "") {
    throw new LatentkitError(
      "config.invalid",
      `${KEY}: expected remote_image_api.base_url to be an http or https address without a user name.`,
      { node: KEY },
    );
  }
  return `${base.replace(/(?<!\/)\/+$/, "")}/${PATH}`;
}

async function pngOf(images: Tensor): Promise<Buffer> {
  const at = { node: KEY, input: "optional_image" };
  if (images.shape[0] !== 1 || images.size === 0)
    throw inputError("input.invalid", at, "one image with pixels", images);
  return encodePng(split(images)[0]!);
}

/** Image of a successful response: JSON with base64 in `image`. */
async function imageOf(response: PostResponse, key: string): Promise<Tensor> {
  const encoded = jsonOf(response)?.image;
  if (typeof encoded !== "string") throw failed("the service did not return an image", key);
  if (encoded === "" || /[^A-Za-z0-9+/=\s]/.test(encoded))
    throw failed("the service returned an image that is not base64", key);
  try {
    return imageTensor(await decodePng(Buffer.from(encoded, "base64")));
  } catch (error) {
    throw failed(`the service did not return a PNG image (${(error as Error).message})`, key);
  }
}

/** Meaning of the status, and the service's own message. */
function refusal(response: PostResponse): string {
  const meaning = MEANINGS[response.status] ?? "Unknown Error";
  const message = serviceMessage(response);
  return `HTTP ${response.status}: ${meaning}${message === "" ? "" : ` (${message})`}`;
}

function serviceMessage(response: PostResponse): string {
  const json = jsonOf(response);
  const words =
    json === undefined
      ? [response.type === "text/plain" ? response.body.toString("utf8", 0, 500) : ""]
      : [json.name, ...(Array.isArray(json.errors) ? json.errors : [json.errors]), json.message];
  return words
    .filter((word): word is string => typeof word === "string" && word !== "")
    .join("; ")
    .replace(/\p{Cc}+/gu, " ")
    .slice(0, 500);
}

function jsonOf(response: PostResponse): Record<string, unknown> | undefined {
  let value: unknown;
  try {
    value = JSON.parse(response.body.toString("utf8"));
  } catch (error) {
    if (error instanceof SyntaxError) return undefined;
    throw error;
  }
  return typeof value === "object" && value !== null ? (value as Record<string, unknown>) : undefined;
}

/** Removes the key from the reason: a service may repeat the key it received. */
function failed(reason: string, key: string): LatentkitError {
  const secret = key.split(/\s+/).at(-1)!;
  const message = `${KEY}: failed to generate image: ${reason}.`.replaceAll(secret, "(key)");
  return new LatentkitError("remote.failed", message, { node: KEY });
}

const CHANNELS = ["red", "green", "blue"] as const;

export const imageToMask = defineNode({
  key: "ext imageToMask",
  description: "One colour channel of an image as a mask [B, H, W], in 256 levels.",
  deprecated: true,
  inputs: { image: image(), channel: choice(CHANNELS) },
  outputs: { MASK: "MASK" },
  run: ({ image, channel }) => ({
    MASK: channelToMask(withoutGreyAlpha(image), CHANNELS.indexOf(channel) as 0 | 1 | 2),
  }),
});

/** Grey and alpha [B, H, W, 2] as grey [B, H, W, 1]; other images as they are. */
const withoutGreyAlpha = (image: Tensor): Tensor => (image.shape[3] === 2 ? firstChannels(image, 1) : image);

export const poseEditor = defineNode({
  key: "ext poseEditor",
  description: "Holds the name of a picture drawn in an editor; returns nothing.",
  deprecated: true,
  inputs: { image: text({ default: "", strict: true }) },
  outputs: {},
  run: () => undefined,
});
