import type { ServerResponse } from "node:http";
import type { Clock, Timer } from "../../clock.js";
import { KEEP_ALIVE_FRAME } from "./sse.js";
import type { EncodedSlice, SliceHolder, StreamMemory } from "./stream-memory.js";

const KEEP_ALIVE_MS = 15_000;

/**
 * Writes to one reader, no faster than it reads. A reader is cut where memory is short (and by `watchWrites`, where it
 * reads nothing for too long). Sends a comment every 15 s, unless bytes wait.
 */
export class StreamWriter implements SliceHolder {
  readonly #res: ServerResponse;
  readonly #clock: Clock;
  readonly #memory: StreamMemory;
  readonly #slowBytes: number;
  /** Number of writes that have not left the process. */
  #unsent = 0;
  #keepAlive: Timer | undefined;
  #onMoved: (() => void) | undefined;

  constructor(res: ServerResponse, clock: Clock, memory: StreamMemory, slowBytes: number) {
    this.#res = res;
    this.#clock = clock;
    this.#memory = memory;
    this.#slowBytes = slowBytes;
    this.#scheduleKeepAlive();
    res.once("close", () => {
      this.#memory.leave(this);
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

  /** Writes shared bytes, which count once for all their readers. */
  writeSlice(slice: EncodedSlice): void {
    this.#memory.hold(this, slice);
    this.#track((done) =>
      this.#res.write(slice.bytes, () => {
        this.#memory.moved(this, slice);
        done();
      }),
    );
  }

  /** Resolves at once or, where too many bytes wait, when they have left or the reader has. */
  async ready(): Promise<void> {
    if (this.#res.writableLength <= this.#slowBytes && !this.#memory.isTight) return;
    while (this.isOpen && this.#unsent > 0) {
      await new Promise<void>((resolve) => {
        this.#onMoved = resolve;
      });
    }
  }

  /** Ends the stream after everything written. */
  end(): void {
    this.#keepAlive?.cancel();
    if (this.isOpen) this.#res.end();
  }

  #track(send: (done: () => void) => void): void {
    this.#unsent++;
    send(() => {
      this.#unsent--;
      this.#onMoved?.();
    });
  }

  #scheduleKeepAlive(): void {
    this.#keepAlive = this.#clock.setTimer(KEEP_ALIVE_MS, () => {
      if (this.#unsent === 0) this.write(KEEP_ALIVE_FRAME);
      this.#scheduleKeepAlive();
    });
  }
}
