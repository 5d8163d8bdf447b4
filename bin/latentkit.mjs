#!/usr/bin/env node
// decision 182
import { createRequire } from "node:module";
import { main } from "../dist/cli/main.js";

// by `require`, which takes half the time of `import` in Node 20
const load = createRequire(import.meta.url);

// command line and service, which never import each other, meet here
/** @type {import("../dist/cli/commands/serve.js").StartService} */
const startService = async (...options) => load("../dist/service/start.js").startService(...options);

/** @type {import("../dist/cli/commands/worker.js").StartWorker} */
const startWorker = async (...options) => load("../dist/service/start-worker.js").startWorkerProcess(...options);

/** @type {import("../dist/cli/batch/render-batch.js").CreateStoreRunners} */
const storeRunners = (...options) => load("../dist/service/store-runners.js").createStoreRunners(...options);

process.exitCode = await main(process.argv.slice(2), undefined, startService, startWorker, storeRunners);
