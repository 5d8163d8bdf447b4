import { alignYourStepsScheduler } from "./align-your-steps-scheduler.js";
import { basicScheduler } from "./basic-scheduler.js";
import { betaSamplingScheduler } from "./beta-sampling-scheduler.js";
import { exponentialScheduler } from "./exponential-scheduler.js";
import { flux2Scheduler } from "./flux2-scheduler.js";
import { karrasScheduler } from "./karras-scheduler.js";
import { laplaceScheduler } from "./laplace-scheduler.js";
import { polyexponentialScheduler } from "./polyexponential-scheduler.js";
import { sdTurboScheduler } from "./sd-turbo-scheduler.js";
import { vpScheduler } from "./vp-scheduler.js";

export const schedulerNodes = [
  basicScheduler,
  karrasScheduler,
  exponentialScheduler,
  polyexponentialScheduler,
  laplaceScheduler,
  vpScheduler,
  betaSamplingScheduler,
  sdTurboScheduler,
  alignYourStepsScheduler,
  flux2Scheduler,
] as const;
