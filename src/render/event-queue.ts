/** Events in order, from work that continues while they are not read. */
export class EventQueue<Event> {
  #events: Event[] = [];
  #isOver = false;
  #wakeReader = () => {};
  #wakeWriter = () => {};
  readonly #limit: number;

  constructor(limit = 1000) {
    this.#limit = limit;
  }

  add(event: Event): void {
    if (this.#isOver) return;
    this.#events.push(event);
    this.#wakeReader();
  }

  /** Adds an event, in place of the newest waiting one if that `isOutdated` by it. */
  replace(event: Event, isOutdated: (waiting: Event) => boolean): void {
    const newest = this.#events.at(-1);
    if (!this.#isOver && newest !== undefined && isOutdated(newest)) this.#events[this.#events.length - 1] = event;
    else this.add(event);
  }

  /** Resolves when the reader has caught up enough for more to be added. */
  async room(): Promise<void> {
    while (this.#events.length >= this.#limit) {
      await new Promise<void>((resolve) => {
        this.#wakeWriter = resolve;
      });
    }
  }

  /** Waits for events and takes all of them; undefined at the end. */
  async take(): Promise<Event[] | undefined> {
    while (this.#events.length === 0) {
      if (this.#isOver) return undefined;
      await new Promise<void>((resolve) => {
        this.#wakeReader = resolve;
      });
    }
    const events = this.#events;
    this.#events = [];
    this.#wakeWriter();
    return events;
  }

  /** No more events will come. */
  end(): void {
    this.#isOver = true;
    this.#wakeReader();
  }

  /** Lets the work continue without waiting for room, once the reader has left. */
  abandon(): void {
    this.end();
    this.#events = [];
    this.#wakeWriter();
  }
}
