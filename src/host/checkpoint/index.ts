export type { ModelKind } from "./files/kinds.js";
export { type CheckpointHost, type CheckpointHostOptions, createCheckpointHost } from "./host.js";
export { type ListedModel, type ListModelsOptions, type ListProgress, listModels } from "./reports/list-models.js";
export type { ModelSettings } from "./settings.js";
