import { describeLoader } from "../../../../helpers/graph/loader-tests.js";

describe("UnetLoaderGGUF", () => describeLoader("UnetLoaderGGUF", "diffusion_models", "separate diffusion models"));
