// A process of `doctor --reproducible`: prints the hashes that it computes, as JSON.
import { measure } from "./measure.js";

process.stdout.write(JSON.stringify(await measure()));
