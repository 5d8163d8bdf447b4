import assert from "node:assert/strict";
import { createParser, type EventSourceMessage } from "eventsource-parser";

export interface SseEvent {
  readonly id: number | undefined;
  readonly event: string;
  readonly data: unknown;
}

/** Reads a stream's events, as an independent parser sees them, to its end or until `count` have come. */
export async function readEvents(response: Response, count = Number.POSITIVE_INFINITY): Promise<SseEvent[]> {
  const events: SseEvent[] = [];
  for await (const event of eventsOf(response)) if (events.push(event) >= count) break;
  return events;
}

/** A stream's events as they come. */
export async function* eventsOf(response: Response): AsyncGenerator<SseEvent, void, undefined> {
  const events: SseEvent[] = [];
  const parser = createParser({
    onEvent({ id, event, data }: EventSourceMessage) {
      events.push({ id: id === undefined ? undefined : Number(id), event: event ?? "message", data: JSON.parse(data) });
    },
    onError(error) {
      throw error;
    },
  });
  assert.ok(response.body, "the response has a body");
  for await (const chunk of response.body.pipeThrough(new TextDecoderStream())) {
    parser.feed(chunk);
    yield* events.splice(0);
  }
}

export const ids = (events: readonly SseEvent[]): number[] =>
  events.flatMap(({ id }) => (id === undefined ? [] : [id]));

export const names = (events: readonly SseEvent[]): string[] => events.map(({ event }) => event);

/** 1, 2, … n */
export const upTo = (n: number): number[] => Array.from({ length: n }, (_, i) => i + 1);
