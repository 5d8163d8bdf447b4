import type { Conditioning, Control, ControlNet } from "../../../host/types.js";
import { float, socket } from "../../inputs.js";

/** Input with a control net. */
export const controlNet = () => socket<ControlNet>("CONTROL_NET");

/** Inputs that say how much and when a control net counts. */
export const controlInputs = () => ({
  strength: float({ default: 1, min: 0, max: 10, step: 0.01 }),
  start_percent: float({ default: 0, min: 0, max: 1, step: 0.001 }),
  end_percent: float({ default: 1, min: 0, max: 1, step: 0.001 }),
});

/**
 * Conditionings whose entries carry a control net, before those that they carry already. Entries with the same control
 * before share one object, so that one model call evaluates them. `toUncond`: the negative side gets it as well.
 */
export function controlled(
  sides: readonly Conditioning[],
  control: Omit<Control, "previous">,
  toUncond = false,
): Conditioning[] {
  const after = new Map<unknown, Control>();
  const follow = (previous: unknown): Control => {
    const shared = after.get(previous) ?? { ...control, previous: previous as Control | undefined };
    after.set(previous, shared);
    return shared;
  };
  return sides.map((entries) =>
    entries.map(([tokens, options]) => [
      tokens,
      { ...options, control: follow(options.control ?? undefined), control_apply_to_uncond: toUncond },
    ]),
  );
}
