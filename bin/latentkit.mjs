#!/usr/bin/env node
// decision 182
import { main } from "../dist/cli/main.js";

// command line and service, which never import each other, meet here
/** @type {import("../dist/cli/commands/serve.js").StartService} */
const startService = async (...options) => (await import("../dist/service/start.js")).startService(...options);

process.exitCode = await main(process.argv.slice(2), undefined, startService);
