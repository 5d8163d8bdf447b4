#!/usr/bin/env node
// npm test: set up, check the layers, run mocha. Arguments go to mocha; named files replace the whole suite.
import { spawnSync } from "node:child_process";
import { join } from "node:path";
import { orExplain, root, setup } from "./setup.mjs";

orExplain(() => setup({ tests: true }));

const node = (...args) => spawnSync(process.execPath, args, { cwd: root, stdio: "inherit" }).status ?? 1;
const layers = node(join(root, "scripts/check-layers.mjs"));
if (layers !== 0) process.exit(layers);

const args = process.argv.slice(2);
const files = args.some((argument) => argument.endsWith(".test.js")) ? [] : ["build/test/**/*.test.js"];
process.exit(node(join(root, "node_modules/mocha/bin/mocha.js"), ...args, ...files));
