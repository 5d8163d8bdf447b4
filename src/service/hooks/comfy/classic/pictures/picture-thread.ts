// Runs in a worker thread: a picture costs the service no turn of its event loop.
import { type Sent, serveWork } from "../../../work-threads.js";
import { maskedPicture, type PictureDone, type PictureWork, viewPicture } from "./pictures.js";

serveWork(async (work: PictureWork): Promise<Sent<PictureDone>> => {
  const made = work.task === "view" ? await viewPicture(work) : await maskedPicture(work);
  if (made === undefined || typeof made === "string") return { value: { refusal: made } };
  // a copy: memory of the core and of sharp cannot move to another thread
  const bytes = new Uint8Array(made);
  return { value: { bytes }, moved: [bytes.buffer] };
});
