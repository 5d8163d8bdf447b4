/**
 * Shows a value on a node of the workflow in extra_pnginfo, so that saved images hold it: the first node whose id, as
 * text, is `uniqueId` gets `widgets_values = [value]`. Does nothing where there is none.
 */
export function setWidgetValues(extraPnginfo: unknown, uniqueId: string | undefined, value: unknown): void {
  if (uniqueId === undefined) return;
  const nodes = property(property(extraPnginfo, "workflow"), "nodes");
  if (!Array.isArray(nodes)) return;
  const node: unknown = nodes.find((candidate) => {
    const id = property(candidate, "id");
    return id !== undefined && id !== null && String(id) === uniqueId;
  });
  // a frozen workflow stays as it is
  if (typeof node === "object" && node !== null) Reflect.set(node, "widgets_values", [value]);
}

function property(object: unknown, key: string): unknown {
  if (typeof object !== "object" || object === null || !Object.hasOwn(object, key)) return undefined;
  return (object as Record<string, unknown>)[key];
}
