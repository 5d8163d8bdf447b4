#include "runtime/runtime.h"

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <mutex>

#include "runtime/threads.h"

namespace latentkit {
namespace {

struct Job {
  ChunkBody body;
  void *context;
  size_t chunks;
  std::atomic<size_t> next{0};
};

constexpr int kMaxThreads = 256;

// decisions: Pool threads stay awake for 250 us
/* A sleeping thread takes some 50 us to wake, more than 110 in a virtual machine whose processor has halted: twice as
 * long, threads look for the next job, and callers for the last chunk, before they sleep. */
constexpr auto kAwake = std::chrono::microseconds(250);

/* Waits awake until is_over() is true, for kAwake at most; returns whether it is. */
template <class IsOver>
bool stay_awake(IsOver is_over) {
  constexpr int kLooks = 32; /* between looks at the clock */
  const auto end = std::chrono::steady_clock::now() + kAwake;
  do {
    for (int look = 0; look < kLooks; look++) {
      if (is_over()) return true;
      relax();
    }
  } while (std::chrono::steady_clock::now() < end);
  return false;
}

// decisions: Pool threads stay awake for 250 us
/* Keeps a thread of the pool off its caller's processor, on which the system would wake it after every pause: there
 * they take turns, and two threads take longer than one. */
class Distance {
 public:
  void keep(int caller) {
    if (caller == kUnknownProcessor || current_processor() != caller) return;
    const auto now = std::chrono::steady_clock::now();
    if (now < next_) return;
    next_ = now + kPause;
    avoidance_.leave(caller);
  }

 private:
  /* Moving a thread takes three system calls, and callers may change processors at every call. */
  static constexpr auto kPause = std::chrono::microseconds(100);
  std::chrono::steady_clock::time_point next_{};
  Avoidance avoidance_;
};

thread_local bool inside_body = false;

void work_on(Job &job) {
  inside_body = true;
  for (size_t chunk; (chunk = job.next.fetch_add(1, std::memory_order_relaxed)) < job.chunks;) {
    job.body(job.context, chunk);
  }
  inside_body = false;
}

int threads_wished() {
  if (const char *text = std::getenv("LATENTKIT_THREADS")) {
    char *end = nullptr;
    long count = std::strtol(text, &end, 10);
    if (end != text && *end == '\0' && count >= 1 && count <= kMaxThreads) return static_cast<int>(count);
  }
  const int count = available_processors();
  return count < kMaxThreads ? count : kMaxThreads;
}

class Pool {
 public:
  void run(Job &job) {
    std::unique_lock<std::mutex> owner(owner_, std::try_to_lock);
    if (!owner.owns_lock()) return work_on(job);
    start();
    {
      std::lock_guard<std::mutex> lock(state_);
      job_ = &job;
      caller_ = current_processor();
      wave_++;
    }
    wake_.notify_all();
    work_on(job);
    {
      std::lock_guard<std::mutex> lock(state_);
      job_ = nullptr;
    }
    // without a job no thread becomes busy; the last one may still hold the lock
    if (stay_awake([this] { return busy_ == 0; })) return;
    std::unique_lock<std::mutex> lock(state_);
    done_.wait(lock, [this] { return busy_ == 0; });
  }

  void resize(int count) {
    std::lock_guard<std::mutex> owner(owner_);
    stop();
    count_.store(count, std::memory_order_relaxed);
  }

  void shutdown() {
    std::lock_guard<std::mutex> owner(owner_);
    stop();
  }

  int count() const { return count_.load(std::memory_order_relaxed); }

 private:
  // under owner_
  void start() {
    while (static_cast<int>(threads_.size()) < count() - 1) {
      if (!start_thread(threads_, [this, wave = wave_.load()] { loop(wave); })) break;
    }
  }

  // under owner_
  void stop() {
    {
      std::lock_guard<std::mutex> lock(state_);
      stopping_ = true;
    }
    wake_.notify_all();
    for (std::thread &thread : threads_) thread.join();
    threads_.clear();
    stopping_ = false;
  }

  void loop(uint64_t seen) {
    Distance distance;
    for (;;) {
      stay_awake([&] { return stopping_ || wave_ != seen; });
      std::unique_lock<std::mutex> lock(state_);
      wake_.wait(lock, [&] { return stopping_ || wave_ != seen; });
      if (stopping_) return;
      seen = wave_;
      if (job_ == nullptr) continue;  // done without this thread
      Job &job = *job_;
      const int caller = caller_;
      busy_++;
      lock.unlock();
      distance.keep(caller);
      work_on(job);
      lock.lock();
      if (--busy_ == 0) done_.notify_one();
    }
  }

  std::mutex owner_; /* held by the one caller whose job runs; guards threads_ */
  std::mutex state_; /* held to change job_, caller_, wave_, busy_ and stopping_ */
  std::condition_variable wake_, done_;
  std::vector<std::thread> threads_;
  std::atomic<int> count_{threads_wished()};
  Job *job_ = nullptr;
  int caller_ = kUnknownProcessor; /* processor of the job's caller */
  std::atomic<uint64_t> wave_{0};
  std::atomic<int> busy_{0};
  std::atomic<bool> stopping_{false};
};

// never destroyed: its threads may outlive static destructors
Pool &pool() {
  static Pool *instance = new Pool;
  return *instance;
}

}  // namespace

void run_chunks(size_t chunks, ChunkBody body, void *context) noexcept {
  if (chunks <= 1 || inside_body || pool().count() == 1) {
    for (size_t chunk = 0; chunk < chunks; chunk++) body(context, chunk);
    return;
  }
  Job job{body, context, chunks};
  pool().run(job);
}

}  // namespace latentkit

int engine_threads(void) { return latentkit::pool().count(); }

engine_status engine_set_threads(int count) {
  if (count < 1 || count > latentkit::kMaxThreads) return ENGINE_BAD_ARGUMENT;
  latentkit::pool().resize(count);
  return ENGINE_OK;
}

void engine_shutdown(void) {
  latentkit::stop_background();
  latentkit::pool().shutdown();
  latentkit::drop_scratch();
}
