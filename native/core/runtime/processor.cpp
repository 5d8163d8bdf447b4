#include "processor.h"

#include <thread>

#if defined(__linux__)
#include <sched.h>
#include <unistd.h>
#endif

namespace latentkit {

int available_processors() {
#if defined(__linux__)
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof set, &set) == 0) {
    const int count = CPU_COUNT(&set);
    if (count > 0) return count;
  }
#endif
  const unsigned count = std::thread::hardware_concurrency();
  return count == 0 ? 1 : static_cast<int>(count);
}

int current_processor() {
#if defined(__linux__)
  return sched_getcpu();
#else
  return kUnknownProcessor;
#endif
}

void Avoidance::leave([[maybe_unused]] int processor) {
#if defined(__linux__)
  cpu_set_t now, others;
  if (processor < 0 || processor >= CPU_SETSIZE || sched_getaffinity(0, sizeof now, &now) != 0) return;
  // the process may be confined to the processors of this thread's own choice, which looks the same here
  if (sched_getaffinity(getpid(), sizeof others, &others) != 0) return;
  // somebody else's choice, and what a later call goes back to
  if (!CPU_EQUAL(&now, &others_)) allowed_ = now;
  CPU_AND(&others, &others, &allowed_);
  CPU_CLR(processor, &others);
  if (CPU_COUNT(&others) > 0 && sched_setaffinity(0, sizeof others, &others) == 0) others_ = others;
#endif
}

}  // namespace latentkit
