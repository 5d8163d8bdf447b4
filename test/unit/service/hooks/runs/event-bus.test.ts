import assert from "node:assert/strict";
import { EventBus } from "#src/service/hooks/runs/event-bus.js";
import { turns } from "../../../../helpers/hooks/fake-clock.js";

const settled = async (work: Promise<void>): Promise<boolean> => {
  let isSettled = false;
  void work.then(() => {
    isSettled = true;
  });
  await turns(1);
  return isSettled;
};

describe("EventBus", () => {
  it("wakes the readers of one run, also before they wait", async () => {
    const bus = new EventBus();
    const [a, b] = [bus.listen("a"), bus.listen("b")];
    bus.wake("a");
    assert.equal(await settled(a.changed()), true);
    const waiting = a.changed();
    assert.equal(await settled(waiting), false);
    assert.equal(await settled(b.changed()), false);
    bus.wake("a");
    await waiting;
  });

  it("forgets closed readers and their runs", async () => {
    const bus = new EventBus();
    const readers = [bus.listen("a"), bus.listen("a"), bus.listen("b")];
    assert.equal(bus.followed, 2);
    const waiting = readers[0]!.changed();
    for (const reader of readers) {
      reader.close();
      reader.close();
    }
    await waiting;
    assert.equal(bus.followed, 0);
    bus.wake("a");
  });

  it("close ends every wait, current and future", async () => {
    const bus = new EventBus();
    const reader = bus.listen("a");
    const waiting = reader.changed();
    bus.close();
    await waiting;
    assert.equal(reader.isClosed, true);
    const late = bus.listen("a");
    await late.changed();
    assert.deepEqual([late.isClosed, bus.followed], [true, 0]);
  });
});
