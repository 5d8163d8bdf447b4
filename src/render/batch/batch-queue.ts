/** What happens while nobody asks, in order. */
export class BatchQueue<Event> {
  private happened: Event[] = [];
  private wake = () => {};
  private taken = () => {};
  /** Resolves when the work that `follow` was given is over, however it ended. */
  settled: Promise<void> = Promise.resolve();

  constructor(private readonly limit = 1000) {}

  add(event: Event): void {
    this.happened.push(event);
    this.wake();
  }

  /** Resolves when the reader has caught up so far that more may happen. */
  async room(): Promise<void> {
    while (this.happened.length >= this.limit) {
      await new Promise<void>((resolve) => {
        this.taken = resolve;
      });
    }
  }

  /** Hands out events until the work is over; throws what it failed with. */
  async *follow(work: Promise<void>): AsyncGenerator<Event, void, undefined> {
    let isOver = false;
    let failure: { error: unknown } | undefined;
    const end = () => {
      isOver = true;
      this.wake();
    };
    this.settled = work.then(end, (error: unknown) => {
      failure = { error };
      end();
    });
    try {
      while (!isOver || this.happened.length > 0) {
        if (this.happened.length === 0) {
          await new Promise<void>((resolve) => {
            this.wake = resolve;
          });
        }
        const events = this.happened;
        this.happened = [];
        this.taken();
        yield* events;
      }
      if (failure !== undefined) throw failure.error;
    } finally {
      // nobody reads on: the work must not wait for room
      this.happened = [];
      this.add = () => {};
      this.taken();
    }
  }
}
