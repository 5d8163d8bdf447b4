import assert from "node:assert/strict";
import {
  type Clip,
  type Conditioning,
  choice,
  defineNode,
  image,
  int,
  invokeNode,
  type Latent,
  type Model,
  type NodeDefinition,
  type Pipe,
  type Registry,
  registry,
  Tensor,
  type Vae,
} from "latentkit";
import type { BuiltInNode } from "#src/nodes/index.js";
import type { ResultOf } from "#src/nodes/outputs.js";

type Equal<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false;
/** Compiles where a value has exactly this type. */
const expectType =
  <Expected>() =>
  <Actual>(value: Actual, ..._: Equal<Actual, Expected> extends true ? [] : ["is of another type", Expected]) =>
    value;

const picture = Tensor.full([1, 8, 8, 3], 0.25);

describe("static types of invokeNode", () => {
  it("know the outputs of the package's nodes", async () => {
    const { result } = await invokeNode("ext imageToMask", { image: picture, channel: "red" });
    const [mask] = expectType<[Tensor]>()(result);
    assert.deepEqual(mask.shape, [1, 8, 8]);

    const { result: loaded } = await invokeNode("CheckpointLoaderSimple", { ckpt_name: "preview-sd15.safetensors" });
    const [, clip] = expectType<[Model, Clip, Vae]>()(loaded);
    const { result: encoded } = await invokeNode("CLIPTextEncode", { text: "a fox", clip });
    assert.equal(expectType<[Conditioning]>()(encoded)[0].length, 1);

    const { result: shown } = await invokeNode("ext if", { any: true, if: 1, else: 2 });
    assert.equal(expectType<[unknown]>()(shown)[0], 1);
    const { result: none } = await invokeNode("InvertMask", { mask });
    assert.deepEqual(expectType<[Tensor]>()(none)[0].shape, [1, 8, 8]);
  });

  it("know several outputs, lists and what may be null", async () => {
    const { result } = await invokeNode("ext pipeLoader", {
      ckpt_name: "preview-sd15.safetensors",
      ...{ positive: "a lake", negative: "", batch_size: 1, empty_latent_width: 64, empty_latent_height: 64 },
    });
    const [pipe] = expectType<[Pipe, Model, Vae, Clip]>()(result);
    const apart = (await invokeNode("ext pipeOut", { pipe: { ...pipe, vae: undefined } })).result;
    type Apart = [Pipe, Model | null, Conditioning | null, Conditioning | null, Latent | null, Vae | null, Clip | null];
    assert.equal(expectType<Apart>()(apart)[5], null);
    type Composite = Awaited<ReturnType<typeof invokeNode<"ext latentCompositeMaskedWithCond">>>["result"];
    expectType<[Pipe, Latent, Conditioning[]]>()(undefined as unknown as Composite);
    type Noisy = Awaited<ReturnType<typeof invokeNode<"ext latentNoisy">>>["result"];
    expectType<[Pipe, Latent, number]>()(undefined as unknown as Noisy);
    type Saved = Awaited<ReturnType<typeof invokeNode<"SaveImage">>>["result"];
    expectType<[]>()(undefined as unknown as Saved);
  });

  it("know the names of inputs, and take others and any value", () => {
    type Inputs = Parameters<typeof invokeNode<"ext imageToMask">>[1];
    const inputs: Inputs = { image: 5, chanel: "red" };
    // a name that is declared is no index signature: editors offer it
    type Named = { [Name in keyof Inputs as string extends Name ? never : Name]: true };
    expectType<"image" | "channel">()("image" as keyof Named);
    assert.equal(inputs.image, 5);
  });

  it("know nothing of a key that is a text, or of another registry", async () => {
    const key: string = "ext imageToMask";
    const inputs = { image: picture, channel: "red" };
    expectType<unknown[]>()((await invokeNode(key, inputs)).result);
    expectType<unknown[]>()((await invokeNode("ext imageToMask", inputs, { registry })).result);
    const nodes: Registry = registry;
    expectType<NodeDefinition | undefined>()(nodes.get("ext imageToMask"));
  });
});

describe("static types of defineNode", () => {
  it("carry key, inputs and outputs, and are assignable to a definition", () => {
    const node = defineNode({
      key: "mine",
      inputs: { image: image(), mode: choice(["a", "b"]), count: int({ optional: true }) },
      outputs: [
        { name: "picture", type: "IMAGE" },
        { name: "names", type: "STRING", list: true },
        { name: "odd", type: "MY_TYPE" },
      ],
      run: ({ image, mode, count }) => {
        expectType<"a" | "b">()(mode);
        expectType<number | undefined>()(count);
        return { picture: image, names: [mode], odd: count };
      },
    });
    expectType<"mine">()(node.key);
    type Types = NonNullable<typeof node.types>;
    expectType<[Tensor, string[], unknown]>()(undefined as unknown as Types["result"]);
    expectType<"image" | "mode" | "count">()("image" as Types["input"]);
    const definition: NodeDefinition = node;
    assert.equal(definition.outputs.length, 3);
    assert.deepEqual(definition.outputs[1], { name: "names", type: "STRING", list: true });
  });

  it("have no positions of outputs that are declared by name", () => {
    expectType<[Tensor]>()(undefined as unknown as ResultOf<{ MASK: "MASK" }>);
    expectType<[]>()(undefined as unknown as ResultOf<Record<never, never>>);
    expectType<(Tensor | number)[]>()(undefined as unknown as ResultOf<{ image: "IMAGE"; value: "FLOAT" }>);
    expectType<unknown[]>()(undefined as unknown as ResultOf<Record<string, string>>);
    expectType<[Latent[]]>()(undefined as unknown as ResultOf<{ all: { type: "LATENT"; list: true } }>);
  });

  it("know each output position of every node of the package", () => {
    type Results = { [Node in BuiltInNode as Node["key"]]: NonNullable<Node["types"]>["result"] };
    type Placeless = { [Key in keyof Results]: number extends Results[Key]["length"] ? Key : never }[keyof Results];
    expectType<never>()(undefined as unknown as Placeless);
    expectType<true>()(true as "ext imageToMask" extends keyof Results ? true : false);
  });
});
