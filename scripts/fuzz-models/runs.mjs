import { basename } from "node:path";
import { randn } from "latentkit";
import { createCheckpointHost } from "latentkit/models";
import { RuntimeProcess } from "#src/host/checkpoint/runtime/process.js";
import { sessionOptions } from "#src/host/checkpoint/runtime/session-options.js";
import { withUnpacked } from "#src/host/checkpoint/weights/packed/unpack.js";

/** Calls of a host before it begins anew: sessions of files that are gone stay loaded. */
const CALLS_OF_HOST = 50;
const PROMPT = "a (red:1.2) cat";

/** Makes sessions of graphs. */
export class Sessions {
  #runtime;
  #session = 0;

  /** Why a graph becomes no session; undefined where it does. @param {import("./roles.mjs").Built} built */
  async flawOf({ graph: { bytes, folder }, unpack }) {
    this.#runtime = this.#runtime?.isAlive ? this.#runtime : new RuntimeProcess();
    const runtime = this.#runtime;
    const session = ++this.#session;
    try {
      await runtime.ready;
      const task = "A session";
      const settings = sessionOptions({ provider: "cpu", threads: 1 }, folder);
      await withUnpacked(unpack, async () => {
        const sent = await runtime.sendBytes(bytes, task);
        await runtime.create({ session, model: sent, options: settings }, task);
      });
      await runtime.request({ type: "release", session }, task);
      return undefined;
    } catch (error) {
      return error.message;
    }
  }

  close() {
    this.#runtime?.kill();
  }
}

/**
 * Calls networks of a models folder as nodes do. Its files of transformers and of text encoders lie in one place; CLIP-L is
 * there too, which T5 takes beside it.
 */
export class Calls {
  #host;
  #calls = 0;

  /** @param {string} models @param {string} clipL name of its file */
  constructor(models, clipL) {
    this.#host = createCheckpointHost({ models, threads: 1 });
    this.clipL = clipL;
  }

  /** Why a network that was recognised cannot be called; undefined where it can. @param {string} path @param {string} kind */
  async flawOf(path, kind) {
    if (++this.#calls % CALLS_OF_HOST === 0) await this.#host.close();
    try {
      await this.#call(basename(path), kind);
      return undefined;
    } catch (error) {
      return error.stack ?? String(error);
    }
  }

  async #call(name, kind) {
    const load = (file, type) => this.#host.loadFile("text_encoders", file, undefined, { type });
    switch (kind) {
      case "z-image":
      case "flux": {
        const model = /** @type {any} */ (await this.#host.loadFile("diffusion_models", name));
        const { outChannels, contextDim } = model.source.network;
        const context = randn([1, 3, contextDim], { seed: 1 });
        return model.predict(randn([1, outChannels, 4, 4], { seed: 2 }), 0.5, [[context, {}]]);
      }
      case "qwen3":
        return (await load(name, "lumina2")).encodeText(PROMPT);
      case "t5": {
        const clip = (await load(name, "flux")).joinedWith([await load(this.clipL, "flux")]);
        return clip.encodeTexts({ clip_l: PROMPT, t5xxl: PROMPT });
      }
    }
  }

  close() {
    return this.#host.close();
  }
}

/** Kinds of networks that are called. */
export const CALLED = ["z-image", "flux", "qwen3", "t5"];
