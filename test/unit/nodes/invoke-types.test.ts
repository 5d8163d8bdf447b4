import assert from "node:assert/strict";
import {
  registry as builtIn,
  type Clip,
  type Conditioning,
  choice,
  createRegistry,
  defineNode,
  image,
  int,
  invokeNode,
  type Latent,
  type Model,
  type NodeDefinition,
  type Pipe,
  type Registry,
  Tensor,
  type Vae,
} from "latentkit";
import type { BuiltInNode } from "#src/nodes/index.js";
import type { ResultOf } from "#src/nodes/outputs.js";
import { refuses } from "../../helpers/errors.js";

type Equal<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false;
/** Compiles only if a value has exactly this type. */
const expectType =
  <Expected>() =>
  <Actual>(value: Actual, ..._: Equal<Actual, Expected> extends true ? [] : ["is of another type", Expected]) =>
    value;

type ResultOfCall<Call extends () => Promise<{ result: unknown }>> = Awaited<ReturnType<Call>>["result"];

const picture = Tensor.full([1, 8, 8, 3], 0.25);
const twice = defineNode({
  key: "twice",
  inputs: { value: image(), times: int({ default: 2 }) },
  outputs: { value: "IMAGE" },
  run: ({ value, times }) => ({
    value: Tensor.from(
      value.data.map((each) => each * times),
      value.shape,
    ),
  }),
});

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
      positive: "a lake",
      negative: "",
      batch_size: 1,
      empty_latent_width: 64,
      empty_latent_height: 64,
    });
    const [pipe] = expectType<[Pipe, Model, Vae, Clip]>()(result);
    const apart = (await invokeNode("ext pipeOut", { pipe: { ...pipe, vae: undefined } })).result;
    type Apart = [Pipe, Model | null, Conditioning | null, Conditioning | null, Latent | null, Vae | null, Clip | null];
    assert.equal(expectType<Apart>()(apart)[5], null);
    const composite = () => invokeNode("ext latentCompositeMaskedWithCond", {});
    expectType<[Pipe, Latent, Conditioning[]]>()(undefined as unknown as ResultOfCall<typeof composite>);
    const noisy = () => invokeNode("ext latentNoisy", {});
    expectType<[Pipe, Latent, number]>()(undefined as unknown as ResultOfCall<typeof noisy>);
    const saved = () => invokeNode("SaveImage", {});
    expectType<[]>()(undefined as unknown as ResultOfCall<typeof saved>);
  });

  it("know the names of inputs, and take any value: a misspelt name does not compile", async () => {
    const warnings: string[] = [];
    const log = (message: string) => warnings.push(message);
    // @ts-expect-error
    await invokeNode("ext imageToMask", { image: picture, chanel: "red", channel: "red" }, { log });
    assert.match(warnings[0]!, /no input "chanel".*Did you mean channel/);
    await refuses(invokeNode("ext imageToMask", { image: 5, channel: "red" }), "input.wrong-type");
  });

  it("know nothing of a key that is a text, or of a registry without a type", async () => {
    const key: string = "ext imageToMask";
    const inputs = { image: picture, channel: "red" };
    expectType<unknown[]>()((await invokeNode(key, inputs)).result);
    const nodes: Registry = builtIn;
    expectType<unknown[]>()((await invokeNode("ext imageToMask", inputs, { registry: nodes })).result);
    expectType<NodeDefinition | undefined>()(nodes.get("ext imageToMask"));
  });

  it("know a node of your own by its definition, and by its key in a registry", async () => {
    const registry = createRegistry([twice], builtIn);
    expectType<[Tensor]>()((await invokeNode(twice, { value: picture, times: 3 })).result);
    expectType<[Tensor]>()((await invokeNode("twice", { value: picture }, { registry })).result);
    // the nodes of the base, as far as no own one takes their place
    const inputs = { image: picture, channel: "red" } as const;
    expectType<[Tensor]>()((await invokeNode("ext imageToMask", inputs, { registry })).result);
    const [first] = (await invokeNode(twice, { value: picture })).result;
    assert.equal(first.data[0], 0.5);
    // @ts-expect-error
    await invokeNode(twice, { value: picture, tims: 3 });
    // @ts-expect-error
    await invokeNode("twice", { value: picture, tims: 3 }, { registry });
    // by its definition, values count too; numbers may come as text, which keeps their digits
    // @ts-expect-error
    await refuses(invokeNode(twice, { value: "a picture" }), "input.wrong-type", /twice, input "value"/);
    assert.equal((await invokeNode(twice, { value: picture, times: "4" })).result[0].data[0], 1);
    const renamed = defineNode({
      key: "InvertMask",
      inputs: {},
      outputs: { text: "STRING" },
      run: () => ({ text: "mine" }),
    });
    const replaced = createRegistry([renamed], registry);
    expectType<[string]>()((await invokeNode("InvertMask", {}, { registry: replaced })).result);
    // a base of unknown nodes
    const open = createRegistry([twice], registry as Registry);
    expectType<[Tensor]>()((await invokeNode("twice", { value: picture }, { registry: open })).result);
    expectType<unknown[]>()((await invokeNode("ext imageToMask", inputs, { registry: open })).result);
  });

  it("take any entry of a node that takes lists", async () => {
    const count = defineNode({
      key: "count",
      inputs: { items: int() },
      outputs: { number: "INT" },
      inputIsList: true,
      run: ({ items }) => ({ number: items.length }),
    });
    assert.deepEqual((await invokeNode(count, { items: [1, "2"] })).result, [2]);
    // @ts-expect-error
    await refuses(invokeNode(count, { itms: [1] }), "input.missing", /count, input "items"/);
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
    expectType<Tensor | undefined>()(undefined as Types["inputs"]["image"]);
    expectType<"a" | "b" | undefined>()(undefined as Types["inputs"]["mode"]);
    expectType<number | bigint | string | undefined>()(undefined as Types["inputs"]["count"]);
    expectType<"image" | "mode" | "count">()("image" as keyof Types["inputs"]);
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
