// The processors that threads run on.
#pragma once

namespace latentkit {

/* Processors that this process may run on, at least 1. */
int available_processors();

constexpr int kUnknownProcessor = -1;

/* The processor that runs this thread; kUnknownProcessor where the system does not tell. */
int current_processor();

/* Moves this thread to any other processor that it may run on; where there is none, or the system does not move
 * threads, it stays. */
void leave_processor(int processor);

}  // namespace latentkit
