import { useState } from "preact/hooks";
import type { Picture } from "../api/types.ts";
import { shortId } from "../parts/words.ts";

/** Two pictures, one over the other, with a slider between them. */
export function Compare({ before, after }: { before: Picture; after: Picture }) {
  const [share, setShare] = useState(50);
  return (
    <figure class="compare">
      <div class="compare-stage" style={{ "--share": `${share}%` }}>
        <img src={before.url} alt={`Left: ${nameOf(before)}`} />
        <img class="compare-after" src={after.url} alt={`Right: ${nameOf(after)}`} />
        <input
          type="range"
          min={0}
          max={100}
          value={share}
          aria-label="Share of the left picture"
          onInput={({ currentTarget }) => setShare(Number(currentTarget.value))}
        />
      </div>
      <figcaption>
        <span>{nameOf(before)}</span>
        <span>{nameOf(after)}</span>
      </figcaption>
    </figure>
  );
}

const nameOf = ({ run_id, name }: Picture) => `${name} of run ${shortId(run_id)}`;
