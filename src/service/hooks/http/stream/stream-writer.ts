import type { ServerResponse } from "node:http";
import type { Clock, Timer } from "../../clock.js";
import { KEEP_ALIVE_FRAME } from "./sse.js";
import type { EncodedSlice, SliceHolder, StreamMemory } from "./stream-memory.js";

const KEEP_ALIVE_MS = 15_000;

/**
 * Writes to one reader and watches that it takes what is written: a reader that takes nothing for `slowSeconds` while
 * bytes wait is cut off, or earlier where memory is short. Sends a comment every 15 s in which nothing waits.
 */
export class StreamWriter implements SliceHolder {
  readonly #res: ServerResponse;
  readonly #clock: Clock;
  readonly #memory: StreamMemory;
  readonly #limits: { readonly slowBytes: number; readonly slowSeconds: number };
  /** Writes that have not left the process. */
  #unsent = 0;
  #stalled: Timer | undefined;
  #keepAlive: Timer | undefined;
  #onMoved: (() => void) | undefined;

  constructor(
    res: ServerResponse,
    clock: Clock,
    memory: StreamMemory,
    limits: { slowBytes: number; slowSeconds: number },
  ) {
    this.#res = res;
    this.#clock = clock;
    this.#memory = memory;
    this.#limits = limits;
    this.#scheduleKeepAlive();
    res.once("close", () => {
      this.#memory.leave(this);
      this.#stalled?.cancel();
      this.#keepAlive?.cancel();
      this.#onMoved?.();
    });
  }

  /** Whether the reader is still there. */
  get isOpen(): boolean {
    return !this.#res.destroyed;
  }

  cut(): void {
    this.#res.destroy();
  }

  write(frame: string): void {
    this.#track((done) => this.#res.write(frame, done));
  }

  /** The bytes are shared: they count once for all their readers. */
  writeSlice(slice: EncodedSlice): void {
    this.#memory.hold(this, slice);
    this.#track((done) =>
      this.#res.write(slice.bytes, () => {
        this.#memory.moved(this, slice);
        done();
      }),
    );
  }

  /** Resolves at once, or where too much waits, when all of it has left or the reader has. */
  async ready(): Promise<void> {
    if (this.#res.writableLength <= this.#limits.slowBytes && !this.#memory.isTight) return;
    while (this.isOpen && this.#unsent > 0) {
      await new Promise<void>((resolve) => {
        this.#onMoved = resolve;
      });
    }
  }

  /** Ends the stream once everything is out. */
  end(): void {
    this.#keepAlive?.cancel();
    if (this.isOpen) this.#track((done) => this.#res.end(done));
  }

  #track(send: (done: () => void) => void): void {
    this.#unsent++;
    this.#stalled ??= this.#watch();
    send(() => {
      this.#unsent--;
      this.#stalled?.cancel();
      this.#stalled = this.#unsent > 0 && this.isOpen ? this.#watch() : undefined;
      this.#onMoved?.();
    });
  }

  #watch(): Timer {
    return this.#clock.setTimer(this.#limits.slowSeconds * 1000, () => this.cut());
  }

  #scheduleKeepAlive(): void {
    this.#keepAlive = this.#clock.setTimer(KEEP_ALIVE_MS, () => {
      if (this.#unsent === 0) this.write(KEEP_ALIVE_FRAME);
      this.#scheduleKeepAlive();
    });
  }
}
