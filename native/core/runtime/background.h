// Threads for whole-image jobs, apart from the compute pool.
#pragma once

namespace latentkit {

/* Finishes what is queued and ends the threads; without effect on one of those threads. */
void stop_background();

}  // namespace latentkit
