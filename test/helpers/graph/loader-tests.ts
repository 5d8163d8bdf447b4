import assert from "node:assert/strict";
import { type HostFiles, invokeNode, registry, validateGraph } from "latentkit";
import { refuses } from "../errors.js";
import { fileHost } from "./file-host.js";

/** Tests of a node that loads one file of a kind; `nothing` is what a host without such files has none of. */
export function describeLoader(
  key: string,
  kind: keyof HostFiles,
  nothing: string,
  others: Readonly<Record<string, unknown>> = {},
): void {
  describe(key, () => {
    const input = Object.keys(registry.get(key)!.inputs).find((name) => others[name] === undefined)!;
    const load = (name: string, options?: object) => invokeNode(key, { [input]: name, ...others }, options);

    it("loads the host's file", async () => {
      const host = fileHost();
      const names: string[] = [];
      const loaded = { is: "loaded" };
      const loadFile = async (ofKind: string, name: string) => {
        names.push(`${ofKind} ${name}`);
        return loaded as never;
      };
      const { result } = await load(`${kind}.safetensors`, { host: { ...host, loadFile } });
      assert.deepEqual(names, [`${kind} ${kind}.safetensors`]);
      assert.equal(result[0], loaded);
    });

    it("refuses a file that the host does not list", async () => {
      const error = await refuses(load(`${kind}.safetensor`, { host: fileHost() }), "input.not-in-list", /safetensors/);
      assert.equal(error.details.input, input);
    });

    it("says what the host lacks, in validation and alone", async () => {
      const linked = others.model === undefined ? others : { ...others, model: ["1", 0] };
      const graph = {
        "1": { class_type: "CheckpointLoaderSimple", inputs: { ckpt_name: "preview-sd15.safetensors" } },
        "5": { class_type: key, inputs: { [input]: "a/b.safetensors", ...linked } },
      };
      const [refusal] = validateGraph(graph, { targets: ["5"] }).nodeErrors["5"]!.errors;
      const where = `node 5, host "preview" has no ${nothing}`;
      assert.equal(refusal!.sentence, `The graph cannot run here: ${key} (${where}).`);
      const error = await refuses(load("a/b.safetensors"), "host.missing");
      assert.equal(error.message, `${key}: host "preview" has no ${nothing}.`);
      await refuses(load({} as string), "input.wrong-type", /expected text/);
    });
  });
}
