import { LatentkitError, suggest } from "../../../../base/errors.js";
import type { S3Credentials } from "./signature-v4.js";

type Environment = Readonly<Record<string, string | undefined>>;

/** Place of a store's objects. */
export interface S3Address {
  readonly bucket: string;
  /** "" or a text that ends in "/". */
  readonly prefix: string;
  readonly region: string;
  /** Scheme, host and port to connect to; the bucket is part of the host or of `basePath`. */
  readonly origin: URL;
  /** Encoded path before every key: "/" or "/bucket/". */
  readonly basePath: string;
}

const KEYS = ["endpoint", "region", "path_style"];
const LONGEST_PREFIX = 512;

/**
 * Reads `s3://BUCKET/PREFIX?endpoint=…&region=…&path_style=…`; endpoint and region may come from the environment, under
 * AWS's names. Fails with config.invalid.
 */
export function readS3Address(text: string, env: Environment): S3Address {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url?.protocol !== "s3:") throw invalid("expected s3://BUCKET/PREFIX");
  if (url.username !== "" || url.password !== "" || url.port !== "" || url.hash !== "") {
    throw invalid("expected s3://BUCKET/PREFIX without user, password, port and fragment");
  }
  for (const key of url.searchParams.keys()) {
    if (KEYS.includes(key)) continue;
    const { hint } = suggest(key, KEYS, (near) => `"${near}"`);
    throw invalid(
      `expected only the parameters ${KEYS.join(", ")}, received ${JSON.stringify(key.slice(0, 40))}`,
      hint,
    );
  }
  const bucket = url.host;
  if (!/^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$/.test(bucket)) {
    throw invalid("expected a bucket of 3 to 63 lower-case letters, digits, dots and hyphens");
  }
  const prefix = decodePrefix(url.pathname);
  const value = (key: string, ...variables: string[]) =>
    url.searchParams.get(key) || variables.map((name) => env[name]?.trim()).find(Boolean);
  const region = value("region", "AWS_REGION", "AWS_DEFAULT_REGION") ?? "us-east-1";
  if (!/^[a-z0-9-]{1,64}$/.test(region)) throw invalid(`expected a region as us-east-1, received ${quoted(region)}`);
  const endpoint = value("endpoint", "AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL");
  const style = url.searchParams.get("path_style") ?? "";
  if (!["", "true", "false"].includes(style))
    throw invalid(`expected path_style=true or false, received ${quoted(style)}`);
  // servers of one's own seldom have a name for each bucket, and certificates of AWS cover no name with further dots
  const hasPathStyle = style === "" ? endpoint !== undefined || bucket.includes(".") : style === "true";
  const origin = readEndpoint(endpoint ?? `https://s3.${region}.amazonaws.com`);
  if (!hasPathStyle) origin.hostname = `${bucket}.${origin.hostname}`;
  return { bucket, prefix, region, origin, basePath: hasPathStyle ? `/${bucket}/` : "/" };
}

/** Reads the credentials in AWS's variables. Fails with config.invalid, without a letter of them. */
export function readS3Credentials(env: Environment): S3Credentials {
  const [accessKeyId, secretAccessKey, sessionToken] = [
    "AWS_ACCESS_KEY_ID",
    "AWS_SECRET_ACCESS_KEY",
    "AWS_SESSION_TOKEN",
  ].map((name) => env[name]?.trim() || undefined);
  if (accessKeyId === undefined || secretAccessKey === undefined) {
    throw invalid("expected AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY in the environment");
  }
  return { accessKeyId, secretAccessKey, ...(sessionToken !== undefined && { sessionToken }) };
}

function decodePrefix(pathname: string): string {
  let prefix: string;
  try {
    prefix = decodeURIComponent(pathname).replace(/^\//, "").replace(/\/$/, "");
  } catch {
    throw invalid("expected a prefix whose percent signs are encoded");
  }
  const isPlain = prefix === "" || prefix.split("/").every((part) => !["", ".", ".."].includes(part));
  // biome-ignore lint/suspicious/noControlCharactersInRegex: it refuses control characters
  if (!isPlain || Buffer.byteLength(prefix) > LONGEST_PREFIX || /[\u0000-\u001f\u007f]/.test(prefix)) {
    throw invalid(`expected a prefix of at most ${LONGEST_PREFIX} bytes without empty parts, "." and ".."`);
  }
  return prefix === "" ? "" : `${prefix}/`;
}

function readEndpoint(text: string): URL {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  const isOrigin = url !== undefined && url.pathname === "/" && url.search === "" && url.hash === "";
  if (!isOrigin || !/^https?:$/.test(url.protocol) || url.username !== "" || url.password !== "") {
    throw invalid("expected an endpoint as https://HOST:PORT, without path, user and password");
  }
  return url;
}

const quoted = (text: string) => JSON.stringify(text.slice(0, 40));

const invalid = (sentence: string, hint = "") => new LatentkitError("config.invalid", `files: ${sentence}.${hint}`);
