import { type Graph, parseGraph } from "../../graph/parse.js";
import { isShownPicture } from "../agent/run-reporter.js";
import { HookError } from "../hooks/hook-error.js";
import { onlyValue } from "../hooks/http/call.js";
import type { HookContext } from "../hooks/http/context.js";
import { signedQuery } from "../hooks/http/routes/payloads.js";
import { fileUrl, type RunFile, type RunFilter, type RunStatus, type RunSummary } from "../hooks/run.js";
import { attempt, factsOf, MOST_GRAPH, type RunFacts } from "./run-facts.js";

/** Runs whose facts are kept, and graphs that many of them share. */
const MOST_RUNS = 2000;
const MOST_GRAPHS = 8;
/** Runs that one request looks through. */
const MOST_SCANNED = 600;
const PAGE = 100;
const NOTHING: RunFacts = { title: "", values: [], models: [], searched: "" };

/** Conditions of a list. */
interface Scan extends Pick<RunFilter, "state" | "tag"> {
  readonly cursor: string | undefined;
  /** Runs that are found, at most. */
  readonly limit: number;
  readonly matches: (run: RunSummary, facts: RunFacts) => boolean;
  /** Stops once the result is no longer awaited. */
  readonly isGone: () => boolean;
}

export interface Scanned {
  readonly runs: readonly { readonly run: RunSummary; readonly facts: RunFacts }[];
  readonly nextCursor: string | null;
  /** Numbers of the newest run that was looked at, and of the oldest; 0 for all there are. */
  readonly from: number;
  readonly to: number;
}

/** Runs with their facts, read off message and graph. These never change, so they are kept for the newest readers. */
export class DescribedRuns {
  readonly #context: Pick<HookContext, "runs" | "turns">;
  readonly #facts = new Map<string, RunFacts>();
  readonly #graphs = new Map<string, Graph | undefined>();
  readonly #pictures = new Map<string, string | undefined>();

  constructor(context: Pick<HookContext, "runs" | "turns">) {
    this.#context = context;
  }

  /** Facts of a run; none if it has been removed. */
  async factsOf(id: string): Promise<RunFacts> {
    const known = this.#facts.get(id);
    if (known !== undefined) return known;
    // each takes a separate turn: a list of them does not block the event loop
    await this.#context.turns.next();
    const run = await unlessRemoved(this.#context.runs.get(id));
    if (run === undefined) return NOTHING;
    const facts = factsOf(run, run.graph === null ? undefined : this.#graphOf(run.graph.text));
    keep(this.#facts, id, facts, MOST_RUNS);
    return facts;
  }

  /** Name of the first picture of an ended run. */
  async firstPictureOf({ id, finishedAt }: RunSummary): Promise<string | undefined> {
    if (finishedAt === null) return undefined;
    if (!this.#pictures.has(id)) {
      const name = (await this.statusOf(id))?.files.find(isPicture)?.name;
      keep(this.#pictures, id, name, MOST_RUNS);
    }
    return this.#pictures.get(id);
  }

  /** Reads the pictures of a run again when they are asked for next. */
  forgetPictures(id: string): void {
    this.#pictures.delete(id);
  }

  /** State of a run; undefined if it has been removed. */
  statusOf(id: string): Promise<RunStatus | undefined> {
    return unlessRemoved(this.#context.runs.status(id));
  }

  /** Runs that match, newest first, among 600 at most; the cursor continues after them. */
  async scan({ cursor, limit, matches, isGone, ...filter }: Scan): Promise<Scanned> {
    const found: { run: RunSummary; facts: RunFacts }[] = [];
    let at = cursor;
    let from = 0;
    for (let count = 0; ; ) {
      const page = await this.#context.runs.list({ cursor: at, limit: PAGE, ...filter });
      for (const run of page.runs) {
        from ||= run.seq;
        count += 1;
        const facts = await this.factsOf(run.id);
        if (matches(run, facts)) found.push({ run, facts });
        if (found.length === limit) return { runs: found, nextCursor: String(run.seq), from, to: run.seq };
      }
      if (page.nextCursor === null) return { runs: found, nextCursor: null, from, to: 0 };
      at = page.nextCursor;
      if (count >= MOST_SCANNED || isGone()) return { runs: found, nextCursor: at, from, to: Number(at) };
    }
  }

  #graphOf(text: string): Graph | undefined {
    if (text.length > MOST_GRAPH) return undefined;
    if (!this.#graphs.has(text))
      keep(
        this.#graphs,
        text,
        attempt(() => parseGraph(text)),
        MOST_GRAPHS,
      );
    return this.#graphs.get(text);
  }
}

/** Adds an entry to a map, and removes the oldest if there are too many. */
function keep<T>(map: Map<string, T>, key: string, value: T, most: number): void {
  map.set(key, value);
  if (map.size > most) map.delete(map.keys().next().value!);
}

async function unlessRemoved<T>(reading: Promise<T>): Promise<T | undefined> {
  try {
    return await reading;
  } catch (error) {
    if (error instanceof HookError && error.kind === "run_not_found") return undefined;
    throw error;
  }
}

/** Time for which an address that the page asks for opens a run, at least. */
export const ADDRESS_SECONDS = 3600;
/** Time for which a picture keeps its address, so that a browser loads it once. */
const SAME_SECONDS = 1800;
export const isPicture = ({ name }: RunFile): boolean => isShownPicture(name);

// decisions: The page keeps the token for its tab
/** The signed query with which a browser loads a run's stream and files; "" if they are open. */
export function signedQueryOf(context: HookContext, runId: string): string {
  const until = Math.ceil(context.runs.now() / 1000 / SAME_SECONDS) * SAME_SECONDS + ADDRESS_SECONDS;
  return new URLSearchParams(signedQuery(context, runId, until)).toString();
}

/** Address of a file, relative to the page; `query` is that of its run. */
export const fileAddress = (runId: string, name: string, query: string): string =>
  fileUrl(runId, name).slice(1) + (query === "" ? "" : `?${query}`);

const MOST_CHARACTERS = 200;
const MOST_MS = 8.64e15;

/** A test for the runs that a query looks for by `search`, `model`, `from` and `to`. Throws invalid_request. */
export function readSearch(query: URLSearchParams): Scan["matches"] {
  const words = (onlyValue(query, "search") ?? "")
    .toLowerCase()
    .split(/\s+/)
    .filter((word) => word !== "");
  if (words.join(" ").length > MOST_CHARACTERS) {
    throw new HookError("invalid_request", `search: expected at most ${MOST_CHARACTERS} characters`);
  }
  const model = onlyValue(query, "model");
  const from = readTime(query, "from") ?? -Infinity;
  const to = readTime(query, "to") ?? Infinity;
  return (run, facts) =>
    run.createdAt >= from &&
    run.createdAt < to &&
    (model === undefined || facts.models.includes(model)) &&
    hasWords(words, run, facts);
}

/** Every word stands somewhere in the run's facts, session, name, tags or id. */
function hasWords(
  words: readonly string[],
  { sessionKey, name, tags, id }: RunSummary,
  { searched }: RunFacts,
): boolean {
  if (words.length === 0) return true;
  const others = [sessionKey, name ?? "", ...tags, id].join("\n").toLowerCase();
  return words.every((word) => searched.includes(word) || others.includes(word));
}

/** Wall clock ms. */
function readTime(query: URLSearchParams, name: string): number | undefined {
  const text = onlyValue(query, name);
  if (text === undefined) return undefined;
  const ms = /^-?\d{1,16}$/.test(text) ? Number(text) : Number.NaN;
  if (Math.abs(ms) <= MOST_MS) return ms;
  throw new HookError("invalid_request", `${name}: expected a time in milliseconds since 1970`);
}
