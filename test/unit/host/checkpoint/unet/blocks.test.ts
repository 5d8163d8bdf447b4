import assert from "node:assert/strict";
import { silu } from "#src/host/checkpoint/networks/layers.js";
import { OnnxGraph } from "#src/host/checkpoint/onnx/graph.js";
import { resBlock, transformer } from "#src/host/checkpoint/unet/blocks.js";
import { networkOf } from "#src/host/checkpoint/weights/network.js";
import { temporaryFolder } from "../../../../helpers/folders.js";
import { unpackModel } from "../../../../helpers/models/golden.js";
import { goldenLayers, layerError } from "../../../../helpers/models/layers.js";
import { CHECKPOINTS } from "../../../../helpers/models/recognised.js";
import { graphSession } from "../../../../helpers/models/session.js";
import { under, unetConfigOf } from "../../../../helpers/models/unet-config.js";
import { weightFile } from "../../../../helpers/models/weight-file.js";

describe("blocks of a UNet", () => {
  const folder = temporaryFolder();

  for (const name of CHECKPOINTS.filter((name) => goldenLayers(name).modules.length > 0))
    it(`computes a residual block and a transformer of ${name} as the reference does`, async () => {
      const { weights } = await weightFile(unpackModel(`checkpoints/${name}`, folder()));
      const own = under("model.diffusion_model.", weights);
      const config = unetConfigOf(new Map([...own].map(([key, { shape }]) => [key, shape])));
      const { modules, tensor } = goldenLayers(name);
      for (const vector of modules.filter(
        ({ key }) => own.has(`${key}.in_layers.0.bias`) || own.has(`${key}.norm.bias`),
      )) {
        const graph = new OnnxGraph(vector.key);
        const network = networkOf(graph, own);
        const x = tensor(vector.x);
        const [inputs, outputs] = [x.shape[1]!, tensor(vector.out).shape[1]!];
        const picture = graph.input("x", "float", ["B", inputs, "h", "w"]);
        const { modelChannels } = config;
        const value =
          vector.emb !== undefined
            ? resBlock(network, vector.key, picture, [inputs, outputs], {
                emb: silu(graph, graph.input("emb", "float", ["B", 4 * modelChannels])),
                modelChannels,
              })
            : transformer(
                network,
                vector.key,
                picture,
                [outputs, config.input[Number(vector.key.split(".")[1])]!.depth],
                { context: graph.input("context", "float", ["B", "S", config.contextDim]) },
                config,
              );
        graph.output(value, "out", "float", ["B", outputs, "h", "w"]);
        const session = await graphSession(graph.encode({ overridable: false }));
        const [other, of] =
          vector.emb === undefined ? (["context", vector.context!] as const) : (["emb", vector.emb] as const);
        const { out } = await session.run({ x, [other]: tensor(of) });
        const error = layerError(out!, tensor(vector.out));
        assert.ok(error <= 1e-5, `${vector.key}: ${error}`);
        await session.release();
      }
      assert.equal(modules.filter(({ emb, context }) => emb !== undefined || context !== undefined).length, 2);
    });
});
