#!/usr/bin/env node
// npm pack and npm publish: compiled TypeScript and this machine's prebuild go into every tarball.
import { orExplain, setup } from "./setup.mjs";

orExplain(setup);
// loaded only now: on a fresh clone the set-up installs what it needs
const { prebuild } = await import("./prebuild.mjs");
await prebuild();
