// The processors that threads run on.
#pragma once

#if defined(__linux__)
#include <sched.h>
#endif

namespace latentkit {

/* Processors that this process may run on, at least 1. */
int available_processors();

constexpr int kUnknownProcessor = -1;

/* The processor that runs this thread; kUnknownProcessor where the system does not tell. */
int current_processor();

/* One processor that a thread is kept off. Belongs to that thread. */
class Avoidance {
 public:
  /* Moves this thread to another processor that it and the process's first thread may run on, and keeps it off this one
   * until the next call; where there is no other, or the system does not move threads, it stays. */
  void leave(int processor);

 private:
#if defined(__linux__)
  cpu_set_t allowed_{}; /* without the avoidance */
  cpu_set_t others_{};
#endif
};

}  // namespace latentkit
