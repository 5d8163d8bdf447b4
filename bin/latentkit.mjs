#!/usr/bin/env node
import { main } from "../dist/cli/main.js";

// command line and service, which never import each other, meet here
const startService = async (...given) => (await import("../dist/service/start.js")).startService(...given);

process.exitCode = await main(process.argv.slice(2), undefined, startService);
