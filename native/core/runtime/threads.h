// Threads: how they start, the processors they run on, and those of whole-image jobs, apart from the pool.
#pragma once

#include <csignal>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#if defined(__linux__)
#include <sched.h>
#endif

namespace latentkit {

/* Adds one thread with all signals masked; false if the system refuses. */
template <class Body>
bool start_thread(std::vector<std::thread> &threads, Body &&body) {
#ifndef _WIN32  // has no signals of that kind
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
#endif
  bool started = true;
  try {
    threads.emplace_back(std::forward<Body>(body));
  } catch (const std::exception &) {
    started = false;
  }
#ifndef _WIN32
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
#endif
  return started;
}

/* Tells the processor that this thread waits for another one. */
inline void relax() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  __asm__ __volatile__("yield");
#endif
}

/* Processors that this process may run on, at least 1. */
int available_processors();

constexpr int kUnknownProcessor = -1;

/* The processor that runs this thread; kUnknownProcessor if the system does not tell. */
int current_processor();

/* One processor that a thread is kept off. Belongs to that thread. */
class Avoidance {
 public:
  /* Moves this thread to another processor that it and the process's first thread may run on, and keeps it off this one
   * until the next call; it stays if there is no other, or if the system does not move threads. */
  void leave(int processor);

 private:
#if defined(__linux__)
  cpu_set_t allowed_{}; /* without the avoidance */
  cpu_set_t others_{};
#endif
};

/* Finishes what is queued and ends the threads; without effect on one of those threads. */
void stop_background();

}  // namespace latentkit
