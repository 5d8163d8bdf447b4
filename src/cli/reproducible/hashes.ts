import type { Subject } from "./measure.js";

/** SHA-256 of each subject, as every machine computes it. A change of these is a change of pictures: see CHANGELOG.md. */
export const HASHES: Readonly<Record<Subject, string>> = {
  noise: "5738522f0380f1feb8314ed094dfe0187e12801583fc86829dc6022ea3327441",
  sigmas: "256be4bd08817d21196df033d72f7a0e69fdc630d4ad9ab1573408582d6bd102",
  samplers: "3eccba7d22d9734f8049a952c12575fa61e3ba651944a7156c918913c8f216c6",
  example: "22b25ea1c5d1e4b12ea4c0c1eaeb11441541adceeec8c9650e684e8d1b675af0",
  batch: "b2902cc1b5874cc3e8fed81cf8c0f02ae52535b44785b0bdaf8d6a009b63794a",
};
