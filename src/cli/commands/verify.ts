import { printJson } from "../../io/json/print.js";
import { type Verdict, verifyImage } from "../../render/verify/verify.js";
import { type Command, pair } from "../command.js";
import { hostOptions, openHost } from "../host.js";
import { readImage } from "../read-image.js";
import { deviceOf } from "../render-options.js";
import { harmless, oneLine, red } from "../terminal.js";

const EXIT_CODES: Readonly<Record<Verdict["status"], number>> = { verified: 0, different: 1, unverifiable: 2 };

export const verifyCommand: Command = {
  usage: "verify IMAGE",
  summary: "Render a picture again from the graph in it and compare the pixels.",
  help: [
    "  --input DIR       folder of the input images (./input)",
    "  --models DIR      ComfyUI's models folder, or an extra_model_paths.yaml; repeatable",
    "  --device DEVICE   device for tensors: auto, cpu or cuda:N (auto)",
    "  --offline         accepted, without effect: verify never uses the network",
    "  --alias OLD=NEW   run nodes of class OLD (or of prefix OLD) as NEW; repeatable",
    "  --json            print one JSON object",
    "",
    "PNG files, and WebP and AVIF files saved with --lossless, can be verified.",
    "A picture that models painted takes --models. Its pixels may be equal or close: at most 4 of 255 off.",
    "Exit code 0: verified, 1: different, 2: no receipt, or no graph that can be rendered again.",
  ],
  options: {
    input: { type: "string" },
    ...hostOptions,
    device: { type: "string" },
    offline: { type: "boolean" },
    alias: { type: "string", multiple: true },
    json: { type: "boolean" },
  },
  positionals: { min: 1, max: 1 },
  run: async (args, terminal, signal) => {
    const path = args.positionals[0]!;
    const { status, pixels, differences, remarks, receipt } = await verifyImage(await readImage(path), {
      inputDir: args.value("input"),
      host: await openHost(args.values("models"), terminal),
      device: deviceOf(args),
      classAliases: Object.fromEntries(args.values("alias").map((text) => pair("alias", text))),
      signal,
    });
    if (args.flag("json")) terminal.out(`${printJson({ path, status, pixels, differences, remarks, receipt })}\n`);
    else if (status === "unverifiable") {
      for (const { message } of differences) terminal.err(`${red(terminal, "latentkit:")} ${harmless(message)}\n`);
    } else {
      const match = receipt?.models === undefined || pixels === undefined ? "" : `, its pixels are ${pixels}`;
      terminal.out(`${oneLine(path)}: ${status}${match}\n`);
      for (const { message } of [...differences, ...remarks]) terminal.out(`  ${harmless(message)}\n`);
    }
    return EXIT_CODES[status];
  },
};
