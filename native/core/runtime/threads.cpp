// The processors of threads, and the background threads of whole-image jobs.
#include <algorithm>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <new>
#include <thread>

#include "engine.h"
#include "runtime/threads.h"

#if defined(__linux__)
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
  // a choice from elsewhere, which a later call goes back to
  if (!CPU_EQUAL(&now, &others_)) allowed_ = now;
  CPU_AND(&others, &others, &allowed_);
  CPU_CLR(processor, &others);
  if (CPU_COUNT(&others) > 0 && sched_setaffinity(0, sizeof others, &others) == 0) others_ = others;
#endif
}

// Threads of the core, not libuv's four; each job owns its data, because an environment may end under it.
namespace {

constexpr int kMaxBackground = 8;

thread_local bool on_background = false;

struct Task {
  void (*work)(void *data);
  void *data;
};

class Background {
 public:
  engine_status submit(Task task) {
    int limit = std::min(engine_threads(), kMaxBackground);
    std::unique_lock<std::mutex> lock(mutex_);
    // a stop in progress joins the old threads without the lock: new ones start when it is done
    stopped_.wait(lock, [this] { return !stopping_ || on_background; });
    try {
      tasks_.push_back(task);
    } catch (const std::bad_alloc &) {
      return ENGINE_NO_MEMORY;
    }
    if (!stopping_ && idle_ < tasks_.size() && static_cast<int>(threads_.size()) < limit) {
      if (!start_thread(threads_, [this] { loop(); }) && threads_.empty()) {
        tasks_.pop_back();
        return ENGINE_NO_MEMORY;
      }
    }
    lock.unlock();
    wake_.notify_one();
    return ENGINE_OK;
  }

  void stop() {
    if (on_background) return;
    std::unique_lock<std::mutex> lock(mutex_);
    stopped_.wait(lock, [this] { return !stopping_; });
    stopping_ = true;
    std::vector<std::thread> ending;
    ending.swap(threads_);
    lock.unlock();
    wake_.notify_all();
    for (std::thread &thread : ending) thread.join();
    lock.lock();
    stopping_ = false;
    lock.unlock();
    stopped_.notify_all();
  }

 private:
  void loop() {
    on_background = true;
    std::unique_lock<std::mutex> lock(mutex_);
    for (;;) {
      idle_++;
      wake_.wait(lock, [this] { return stopping_ || !tasks_.empty(); });
      idle_--;
      if (tasks_.empty()) return;
      Task task = tasks_.front();
      tasks_.pop_front();
      lock.unlock();
      task.work(task.data);
      lock.lock();
    }
  }

  std::mutex mutex_;
  std::condition_variable wake_, stopped_;
  std::deque<Task> tasks_;
  std::vector<std::thread> threads_;
  size_t idle_ = 0;
  bool stopping_ = false;
};

// never destroyed: its threads may outlive static destructors
Background &background() {
  static Background *instance = new Background;
  return *instance;
}

}  // namespace

void stop_background() { background().stop(); }

}  // namespace latentkit

engine_status engine_submit(void (*work)(void *data), void *data) {
  if (work == nullptr) return ENGINE_BAD_ARGUMENT;
  return latentkit::background().submit({work, data});
}
