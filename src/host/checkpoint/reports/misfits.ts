import type { LatentkitError } from "../../../base/errors.js";
import type { GivenPart, LoadedPart } from "../../host.js";
import { pooledError } from "../diffusion/conditioning.js";
import { absentVae } from "../diffusion/family.js";
import { contextError, type NetworkSizes, takesContext } from "../diffusion/model.js";
import { type EncoderSize, type EncodingSizes, encodingSizes, UNKNOWN_SIZES } from "../families/clip-types.js";
import { placesError } from "../flux/patches.js";
import { latentError } from "../vae/model.js";
import type { FileRefusals } from "./refusals.js";

type Files = Pick<FileRefusals, "of" | "facts">;

// decisions: Parts of models fit by widths
/** Host's `misfit`, by the headers of files. */
export function misfitOf(taker: LoadedPart, given: GivenPart | undefined, files: Files): LatentkitError | undefined {
  if (given === undefined) return lackOf(taker, files);
  if (given.type === "MODEL" || given.type === "VAE") {
    const [own, other] = [latentsOf(taker, files), latentsOf(given, files)];
    if (own === undefined || other === undefined || own.channels === other.channels) return undefined;
    return latentError(own.label, own.channels, `[B, ${other.channels}, h, w] from ${other.label}`);
  }
  const network = networkOf(taker, files);
  if (network === undefined) return undefined;
  if (given.type === "reference_latents_method") {
    // "uxo/uno" is one place by both of its names
    const [places] = given.places.split("/");
    return network.places?.includes(places!) === false ? placesError(network.places, places) : undefined;
  }
  const { widths, pooled } = encodingOf(given, files);
  const { pooledWidth } = network;
  if (widths.length > 0 && !widths.some((width) => takesContext(network, width)))
    return contextError(network, `[n, tokens, ${widths.join(" or ")}] from ${namesOf(given)}`);
  if (pooled === undefined || pooledWidth === undefined || pooled === pooledWidth) return undefined;
  return pooledError(pooledWidth, `[n, ${pooled}] from ${namesOf(given)}`);
}

/** The error of a checkpoint without the VAE that it is asked for. */
function lackOf({ type, files: [file] }: LoadedPart, files: Files): LatentkitError | undefined {
  if (type !== "VAE" || file?.kind !== "checkpoints") return undefined;
  const { network, vaeChannels } = files.facts(file.kind, file.name);
  return network !== undefined && vaeChannels === undefined ? absentVae(file.name) : undefined;
}

function networkOf({ files: [file] }: LoadedPart, files: Files): NetworkSizes | undefined {
  return file && files.facts(file.kind, file.name).network;
}

/** Output of a clip, as far as it is known and its files can be loaded. */
function encodingOf({ files: loaded, settings }: LoadedPart, files: Files): EncodingSizes {
  const [first] = loaded;
  if (first?.kind === "checkpoints") return files.facts(first.kind, first.name).encoding ?? UNKNOWN_SIZES;
  const type = settings?.type;
  if (type === undefined) return UNKNOWN_SIZES;
  const encoders: EncoderSize[] = [];
  for (const { kind, name } of loaded) {
    const own = files.facts(kind, name).encoders;
    if (own === undefined || files.of(kind, name, { type }) !== undefined) return UNKNOWN_SIZES;
    encoders.push(...own);
  }
  return encodingSizes(encoders, type);
}

/** Channels of the latents that a model or VAE takes and makes. */
function latentsOf(part: LoadedPart, files: Files): { readonly label: string; readonly channels: number } | undefined {
  if (part.type === "MODEL") {
    const network = networkOf(part, files);
    return network && { label: network.label, channels: network.outChannels };
  }
  const [file] = part.files;
  const channels = file && files.facts(file.kind, file.name).vaeChannels;
  return channels === undefined ? undefined : { label: `VAE of ${file!.name}`, channels };
}

const namesOf = ({ files }: LoadedPart): string => files.map(({ name }) => name).join(" and ");
