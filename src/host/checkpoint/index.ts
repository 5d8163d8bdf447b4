export { type CheckpointHost, type CheckpointHostOptions, createCheckpointHost } from "./host.js";
