// Starting threads that never take a signal meant for the program.
#pragma once

#include <csignal>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

namespace latentkit {

/* Adds one thread with all signals masked; false where the system gives none. */
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

}  // namespace latentkit
