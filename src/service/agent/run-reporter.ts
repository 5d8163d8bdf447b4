import { dirname, extname, relative, sep } from "node:path";
import type { NodeUi, RunEvent } from "../../graph/events.js";
import { encodePng } from "../../io/png/png.js";
import type { RawImage } from "../../io/png/raw-image.js";
import { filesOf, type RenderedFile } from "../../render/result.js";
import type { AgentContext } from "./agent.js";

// Stored for every reader, hence few: their number grows with the logarithm of the run's time.
/** Least time between two previews of a run that are stored; later a quarter of the time since its start, so that they stay few. */
const PREVIEW_MS = 1000;
const PREVIEW_SHARE = 1 / 4;
/** Level of compression of a preview: a picture of a moment is not worth more. */
const PREVIEW_LEVEL = 1;

/** Longest texts of a node's UI result that an event has, as JSON. */
const MOST_UI_CHARACTERS = 64 * 1024;

/** Extensions of pictures that browsers show. */
const PICTURES: ReadonlySet<string> = new Set([".png", ".jpg", ".jpeg", ".webp", ".gif", ".avif"]);

/** Whether browsers show a file of this name. */
export const isShownPicture = (name: string): boolean => PICTURES.has(extname(name).toLowerCase());

/** A file as events and the response name it; `subfolder` is relative to the output folder. */
export interface ReportedFile {
  readonly node: string;
  readonly filename: string;
  readonly subfolder: string;
  readonly type: string;
  readonly url: string;
}

export interface ReportOptions {
  readonly outputDir: string;
  /** Folder of the run's files. */
  readonly folder: string;
  /** Whether its client receives cached nodes and whole UI results, as ComfyUI's clients do. */
  readonly isForComfy: boolean;
}

/** Emits the events of a graph's run, and collects its files. */
export function createReporter(
  graph: Readonly<Record<string, unknown>>,
  { outputDir, folder, isForComfy }: ReportOptions,
  { emit, addFile, preview: show }: AgentContext,
) {
  const files = new Map<string, ReportedFile>();
  const classOf = (id: string) => (graph[id] as { class_type?: unknown } | undefined)?.class_type ?? null;
  const subfolderOf = (path: string) => relative(outputDir, dirname(path)).split(sep).join("/");
  const report = (node: string, file: RenderedFile) => {
    const { path, filename, type } = file;
    // a reader may fetch what a node reports: only files of this run's folder
    if (files.has(path) || !path.startsWith(folder + sep)) return;
    const reported = { node, filename, subfolder: subfolderOf(path), type, url: addFile({ path }).url };
    files.set(path, reported);
    emit(isShownPicture(filename) ? "image" : "file", reported);
  };
  /** Nodes of the run that are not done; includes those that a lazy branch leaves out. */
  let open = new Set<string>();
  let nodes = 0;
  const startedAt = performance.now();
  let storedFrom = 0;
  const sendPreview = async (step: { value: number; max: number; node: string }, picture: RawImage) => {
    const now = performance.now();
    const isStored = now >= storedFrom;
    if (!isStored && !isForComfy) return;
    if (isStored) storedFrom = now + Math.max(PREVIEW_MS, (now - startedAt) * PREVIEW_SHARE);
    try {
      const png = await encodePng(picture, { level: PREVIEW_LEVEL });
      if (isForComfy) show?.(png, step.node);
      if (isStored) emit("preview", { ...step, url: `data:image/png;base64,${png.toString("base64")}` });
    } catch (error) {
      emit("warning", { node: step.node, message: `Preview failed: ${(error as Error).message}` });
    }
  };
  const onEvent = (event: RunEvent) => {
    if (event.type === "run-start") {
      open = new Set(event.nodeIds);
      nodes = open.size;
    } else if (event.type === "cached") {
      for (const id of event.nodeIds) open.delete(id);
      if (isForComfy && event.nodeIds.length > 0) emit("cached", { nodes: event.nodeIds });
    } else if (event.type === "node-start")
      emit("node_start", { node: event.displayId, class_type: classOf(event.displayId) });
    else if (event.type === "progress") {
      const { value, max, nodeId: node, preview } = event;
      emit("progress", { value, max, node });
      if (preview !== undefined) void sendPreview({ value, max, node }, preview as RawImage);
    } else if (event.type === "node-done") {
      const { displayId: node, ms } = event;
      open.delete(node);
      const done = nodes - open.size;
      emit("node_done", { node, class_type: classOf(node), ms: Math.round(ms * 10) / 10, done, nodes });
      const { ui = {} } = event;
      for (const file of filesOf(ui, folder)) report(node, file);
      if (isForComfy && Object.keys(ui).length > 0) {
        emit("node_output", { node, output: shownUi(ui, folder, subfolderOf) });
      }
    } else if (event.type === "node-error") {
      const { nodeId: node, error } = event;
      emit("node_error", { node, class_type: classOf(node), message: error.message, code: error.code });
    } else if (event.type === "network") {
      const { network, state, memory } = event;
      emit("network", { network, state, ...(memory && { memory }) });
    } else if (event.type === "warning") emit("warning", { node: event.nodeId ?? null, message: event.message });
  };
  return {
    onEvent,
    get files(): readonly ReportedFile[] {
      return [...files.values()];
    },
  };
}

/** The UI result of a node with folders as events name them, without what is not JSON or is longer than an event may be. */
function shownUi(ui: NodeUi, folder: string, subfolderOf: (path: string) => string): Record<string, unknown[]> {
  let left = MOST_UI_CHARACTERS;
  const shown: Record<string, unknown[]> = {};
  for (const [key, entries] of Object.entries(ui)) {
    shown[key] = entries.flatMap((entry): unknown[] => {
      const [file] = filesOf({ [key]: [entry] }, folder);
      if (file !== undefined) {
        return [{ filename: file.filename, subfolder: subfolderOf(file.path), type: file.type }];
      }
      if (typeof entry !== "string" && typeof entry !== "number" && typeof entry !== "boolean") return [];
      left -= String(entry).length;
      return left < 0 ? [] : [entry];
    });
  }
  return shown;
}
