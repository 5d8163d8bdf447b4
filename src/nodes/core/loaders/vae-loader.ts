import { defineNode } from "../../define.js";
import { fileName, loadHostFile } from "../../host-files.js";

export const vaeLoader = defineNode({
  key: "VAELoader",
  displayName: "Load VAE",
  category: "loaders",
  description: "Loads a separate VAE of the host.",
  inputs: { vae_name: fileName("vae") },
  outputs: { VAE: "VAE" },
  run: async ({ vae_name }, { host, signal, log }) => ({
    VAE: await loadHostFile("vae", { vae_name }, { host, signal, log }),
  }),
});
