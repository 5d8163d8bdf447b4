// Types of what the service sends, from the schemas and functions that make it. "#src" is the compiled service.
import type { Body } from "#src/service/hooks/http/response-schemas.js";
import type { RunForm as FormOfRun } from "#src/service/web/inspect.js";
import type { PageBody } from "#src/service/web/page-route.js";
import type { ShownParameter } from "#src/service/web/shown-graph.js";

export type { ListedModel as Model } from "#src/host/checkpoint/reports/list-models.js";
export type { NodeDescription } from "#src/nodes/describe.js";
export type { Receipt } from "#src/render/receipt/receipt.js";
export { RUN_STATES as STATES, type RunState } from "#src/service/hooks/run.js";
export type { Inspection } from "#src/service/web/inspect.js";
export type { ShownNode as GraphNode } from "#src/service/web/shown-graph.js";

export type Run = Body<"run">;
export type RunDetail = Body<"runStatus">;
export type Progress = NonNullable<RunDetail["progress"]>;
/** A run as the page lists it. */
export type ListedRun = PageBody<"listedRun">;
export type RunPage = PageBody<"runPage">;
/** Values that a run was started with. */
export type RunStart = PageBody<"runStart">;
export type Picture = PageBody<"picture">;

export interface RunEvent {
  readonly id: number;
  readonly event: string;
  readonly data: Readonly<Record<string, unknown>>;
}

/** A field of a form, of a graph that is shown or of one of the service. */
export type Parameter = Omit<ShownParameter, "named"> & Partial<Pick<ShownParameter, "named">>;

/** Fields of a run that is started again; parameters null: one message. */
export type RunForm = Omit<FormOfRun, "parameters"> & { readonly parameters: readonly Parameter[] | null };

/** A graph of the service, with the JSON Schema of the messages that it takes. */
export type NamedGraph = Omit<Body<"graphs">["graphs"][number], "schema"> & {
  readonly schema: {
    readonly properties: Readonly<Record<string, Omit<Parameter, "key" | "required">>>;
    readonly required: readonly string[];
  };
};
