// A process of `doctor --reproducible`: prints the hashes that it computes, as JSON.
import { measure } from "./hashes.js";

process.stdout.write(JSON.stringify(await measure()));
