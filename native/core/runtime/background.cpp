#include "background.h"

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <new>

#include "engine.h"
#include "threads.h"

// decision 61
namespace latentkit {
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
