import { gigabytes } from "../../../base/bytes.js";
import { LatentkitError } from "../../../base/errors.js";
import { type Device, hasFloat16, isGpu, type Plan, sessionOptions } from "../session/options.js";
import type { RuntimeOptions } from "../session/runtime.js";
import {
  fits,
  type LoadedSession,
  plannedOn,
  preferredPlan,
  type Room,
  type SessionSource,
  sessionBytes,
} from "../session/sessions.js";
import { withUnpacked } from "../weights/packed/unpack.js";
import { requireUnchanged } from "../weights/stored.js";
import type { LoadedProcess } from "./loaded-process.js";
import { freeMemory } from "./machine.js";

export type OnLoad = NonNullable<RuntimeOptions["onLoad"]>;

/** How a network is loaded for a call. */
export interface Load {
  readonly calls?: number;
  /** Cells of the picture or latent that it takes. */
  readonly cells: number;
  /** Bytes that the call takes beside the weights. */
  readonly work: number;
  readonly onLoad: OnLoad;
}

/** Where a network is loaded. */
export interface LoadPlace {
  readonly loaded: LoadedProcess;
  readonly device: Device;
  /** Sessions of the same call, which stay. */
  readonly needed: readonly LoadedSession[];
}

type SessionLoad = Load & LoadPlace;

interface LoaderOptions extends Pick<RuntimeOptions, "plan" | "memory"> {
  readonly threads: number;
  /** Most bytes of sessions that are not known to make a GPU fail. */
  readonly mostBytes: () => number;
}

/** Loads sessions as memory allows, and releases others for them. */
export class SessionLoader {
  readonly #options: LoaderOptions;

  constructor(options: LoaderOptions) {
    this.#options = options;
  }

  /** A loaded session of the source, with room for a run of it. */
  async session(load: SessionLoad, source: SessionSource): Promise<LoadedSession> {
    const { loaded, device, needed, calls = 1, cells, work } = load;
    const { sessions } = loaded;
    const place = { isGpu: isGpu(device), hasFloat16: hasFloat16(device) };
    const wish = preferredPlan(source, { calls, cells, device: place, wish: this.#options.plan });
    const known = sessions.use(source.key, wish);
    if (known !== undefined && known.plan !== "stream") return known;
    // a streamed session reads its file in every run
    await requireUnchanged(source.states ?? []);
    if (known !== undefined) return known;
    const room = this.#room(place.isGpu, work);
    const others = needed.reduce((sum, { bytes }) => sum + bytes, 0);
    const spare = Math.min(room.weights - others, room.free + sessions.heldBytes(needed));
    const isForced = this.#options.plan === "fold" || place.isGpu || source.isFixed === true;
    const plan = isForced || (wish === "fold" && fits(plannedOn(device, source), spare)) ? wish : "stream";
    // streamed for lack of memory, it stays so until it is released
    const streamed = plan === "stream" ? sessions.use(source.key, plan) : undefined;
    return streamed ?? this.#create(load, source, plan);
  }

  /** Room left for sessions. No interface reports the free memory of a GPU; only failures do. */
  #room(isOnGpu: boolean, taken: number): Room {
    const { memory = Number.POSITIVE_INFINITY } = this.#options;
    return isOnGpu
      ? { weights: Math.min(memory, this.#options.mostBytes()), free: Number.POSITIVE_INFINITY }
      : { weights: memory, free: freeMemory() - taken };
  }

  async #create(load: SessionLoad, source: SessionSource, plan: Plan): Promise<LoadedSession> {
    const { loaded, device, needed, work, onLoad } = load;
    const { process, sessions } = loaded;
    const { provider, target } = device;
    const next = sessions.next(source, plan, sessionBytes(plannedOn(device, source), plan));
    const pages = plan === "stream" ? source.fileBytes : 0;
    const room = this.#room(isGpu(device), next.bytes + work);
    const isBounded = this.#options.memory !== undefined;
    const surplus = sessions.surplus(room, needed, { bytes: next.bytes, pages: isBounded ? 0 : pages });
    const free = room.free + (await this.#release(loaded, surplus, onLoad));
    requireRoom(source.label, { weights: next.bytes, work }, free);
    onLoad(source.label, "loading", { bytes: next.bytes, work, pages, ...(Number.isFinite(free) ? { free } : {}) });
    const made = await source.make(plan, target);
    const task = `${source.label}, while it was loaded`;
    const model = "path" in made ? made : await process.sendBytes(made.bytes, task);
    const folder = "path" in made ? "" : made.folder;
    const options = sessionOptions({ provider, threads: this.#options.threads, isStage: source.isStage }, folder);
    const unpack = "path" in made ? undefined : made.unpack;
    const ports = await withUnpacked(unpack, () => process.create({ session: next.number, model, options }, task));
    const session = { ...next, ports, arenaBytes: 0 };
    sessions.add(session);
    onLoad(source.label, "loaded");
    return session;
  }

  /** Releases other sessions for a run of loaded ones, unless they already hold the memory it needs. */
  async makeRoom({ loaded, device, needed, work, onLoad }: Omit<SessionLoad, "calls" | "cells">): Promise<void> {
    const more = work - Math.min(...needed.map(({ arenaBytes }) => arenaBytes));
    if (more <= 0) return;
    const { free } = this.#room(isGpu(device), more);
    const surplus = loaded.sessions.surplus({ weights: Number.POSITIVE_INFINITY, free }, needed);
    const freed = await this.#release(loaded, surplus, onLoad);
    requireRoom(needed.at(-1)!.label, { weights: 0, work: more }, free + freed);
  }

  /** Returns the bytes that it frees. */
  async #release(
    { process, sessions }: LoadedProcess,
    surplus: readonly LoadedSession[],
    onLoad: OnLoad,
  ): Promise<number> {
    let freed = 0;
    for (const session of surplus) {
      await process.request({ type: "release", session: session.number }, `${session.label}, while it was released`);
      sessions.remove(session);
      freed += session.bytes + session.arenaBytes;
      onLoad(session.label, "released");
    }
    return freed;
  }
}

/** By how much an estimate may be too high. */
const DOUBT = 0.15;

/** Bytes that a network takes: for its weights, and for a run. */
interface Need {
  readonly weights: number;
  readonly work: number;
}

// decisions: Memory estimates refuse late
/**
 * Throws memory.missing for a network that does not fit: `free` is the memory left once it is loaded, negative if there is
 * too little. macOS does not say how much memory the system can still give.
 *
 * @internal
 */
export function requireRoom(label: string, { weights, work }: Need, free: number, platform = process.platform): void {
  const need = weights + work;
  if (platform === "darwin" || free + DOUBT * need >= 0) return;
  const advice =
    weights > work
      ? "use a file with fewer bits per weight, such as GGUF's Q4_K"
      : "use a smaller picture, a smaller batch or tiles";
  const message = `${label} needs ${gigabytes(need)} of memory, but only ${gigabytes(need + free)} is free: ${advice}.`;
  throw new LatentkitError("memory.missing", message);
}
