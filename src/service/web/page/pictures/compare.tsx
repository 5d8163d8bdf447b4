import { useState } from "preact/hooks";
import type { Picture } from "../api/types.ts";
import { shortId } from "../parts/words.ts";

interface Size {
  readonly width: number;
  readonly height: number;
}

const NOTHING: Size = { width: 0, height: 0 };

/** Two pictures at one scale, centred one over the other, with a slider between them. */
export function Compare({ before, after }: { before: Picture; after: Picture }) {
  const [share, setShare] = useState(50);
  const [sizes, setSizes] = useState<readonly [Size, Size]>([NOTHING, NOTHING]);
  // a picture's own size is the same however it is shown
  const measure = (index: 0 | 1) => (event: Event) => {
    const { naturalWidth: width, naturalHeight: height } = event.currentTarget as HTMLImageElement;
    setSizes(([first, second]) => (index === 0 ? [{ width, height }, second] : [first, { width, height }]));
  };
  const stage = {
    width: Math.max(1, sizes[0].width, sizes[1].width),
    height: Math.max(1, sizes[0].height, sizes[1].height),
  };
  const styleOf = ({ width, height }: Size) => ({
    width: `${(100 * width) / stage.width}%`,
    height: `${(100 * height) / stage.height}%`,
  });
  return (
    <figure class="compare">
      <div class="compare-stage" style={{ "--share": `${share}%`, "--ratio": `${stage.width / stage.height}` }}>
        <div class="compare-layer">
          <img src={before.url} alt={`Left: ${nameOf(before)}`} style={styleOf(sizes[0])} onLoad={measure(0)} />
        </div>
        <div class="compare-layer compare-after">
          <img src={after.url} alt={`Right: ${nameOf(after)}`} style={styleOf(sizes[1])} onLoad={measure(1)} />
        </div>
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
        <Caption picture={before} size={sizes[0]} />
        <Caption picture={after} size={sizes[1]} />
      </figcaption>
    </figure>
  );
}

function Caption({ picture, size: { width, height } }: { picture: Picture; size: Size }) {
  return (
    <span>
      {picture.title || nameOf(picture)}
      {width > 0 && ` · ${width} × ${height}`}
    </span>
  );
}

const nameOf = ({ run_id, name }: Picture) => `${name} of run ${shortId(run_id)}`;
