import { createRequire } from "node:module";

// Packages that only some programs need: each is loaded by the first call, not by importing latentkit or latentkit/hooks.

const require = createRequire(import.meta.url);

export const loadExpress = () => require("express") as typeof import("express");
/** A font: five columns for each character of `lookup`, from the left; the lowest bit of a column is its top pixel. */
export const loadFont = () =>
  require("oled-font-5x7") as { readonly fontData: readonly number[]; readonly lookup: readonly string[] };
export const loadKoffi = () => require("koffi") as typeof import("koffi");
export const loadOpenTelemetry = () => require("@opentelemetry/api") as typeof import("@opentelemetry/api");
export const loadPg = () => require("pg") as typeof import("pg");
export const loadPino = () => require("pino") as typeof import("pino");
export const loadPromClient = () => require("prom-client") as typeof import("prom-client");
export const loadSharp = () => require("sharp") as typeof import("sharp", { with: { "resolution-mode": "require" }});
export const loadWs = () => require("ws") as typeof import("ws");
export const loadZod = () => require("zod") as typeof import("zod");

/** A function that calls `make` once and returns that value from then on. */
export function lazy<T extends object>(make: () => T): () => T {
  let value: T | undefined;
  return () => {
    value ??= make();
    return value;
  };
}

/** Reads a text once, however often it comes in a row: items of a batch have graph and job in common. */
export function memoizeLast<T, Text = string>(read: (text: Text) => T): (text: Text) => T {
  let last: { readonly text: Text; readonly value: T } | undefined;
  return (text) => {
    if (last?.text !== text) last = { text, value: read(text) };
    return last.value;
  };
}
