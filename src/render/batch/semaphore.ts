/** A counting semaphore, first come first served. */
export class Semaphore {
  private free: number;
  private readonly waiting: (() => void)[] = [];

  constructor(readonly count: number) {
    this.free = count;
  }

  async take(): Promise<void> {
    if (this.free > 0) this.free--;
    else await new Promise<void>((resolve) => this.waiting.push(resolve));
  }

  give(): void {
    const next = this.waiting.shift();
    if (next === undefined) this.free++;
    else next();
  }

  /** Resolves when nobody holds one. */
  async takeAll(): Promise<void> {
    for (let i = 0; i < this.count; i++) await this.take();
  }
}
