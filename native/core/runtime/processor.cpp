#include "processor.h"

#include <thread>

#if defined(__linux__)
#include <sched.h>
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

void leave_processor([[maybe_unused]] int processor) {
#if defined(__linux__)
  cpu_set_t all;
  if (processor < 0 || processor >= CPU_SETSIZE || sched_getaffinity(0, sizeof all, &all) != 0) return;
  cpu_set_t others = all;
  CPU_CLR(processor, &others);
  // the thread is moved at once, and may come back later
  if (CPU_COUNT(&others) > 0 && sched_setaffinity(0, sizeof others, &others) == 0)
    sched_setaffinity(0, sizeof all, &all);
#endif
}

}  // namespace latentkit
