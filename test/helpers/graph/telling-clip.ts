import { type Clip, type Conditioning, Tensor } from "latentkit";
import { fakeClip } from "./fake-clip.js";

/** A clip of encoders beyond CLIP's that lists what it was asked. */
export function tellingClip(): { clip: Clip; seen: { texts: object; pictures: readonly Tensor[] }[] } {
  const seen: { texts: object; pictures: readonly Tensor[] }[] = [];
  const encodeTexts = async (texts: object, pictures: readonly Tensor[]): Promise<Conditioning> => {
    seen.push({ texts, pictures });
    return [[Tensor.zeros([1, 2, 4]), { told: 1 }]];
  };
  return { clip: { encoders: fakeClip("l").encoders, encodeTexts }, seen };
}
