// The pool, the background threads, the choice of instruction set and the cache of memory under load. Also run under
// ThreadSanitizer.
#include <condition_variable>
#include <mutex>
#include <thread>

#include "check.h"
#include "runtime/threads.h"

#if defined(__linux__)
#include <sched.h>
#include <unistd.h>
#endif

namespace {

void settings() {
  CHECK(engine_threads() >= 1);
  for (int bad : {0, -1, 257}) CHECK(engine_set_threads(bad) == ENGINE_BAD_ARGUMENT);
  CHECK(engine_set_threads(3) == ENGINE_OK && engine_threads() == 3);
  CHECK(engine_isa_supported("baseline") && !engine_isa_supported("avx9000") && !engine_isa_supported(nullptr));
  CHECK(engine_set_isa("avx9000") == ENGINE_UNSUPPORTED && engine_set_isa(nullptr) == ENGINE_UNSUPPORTED);
  for (const std::string &name : supported_isas()) {
    CHECK(engine_set_isa(name.c_str()) == ENGINE_OK && name == engine_isa());
  }
  for (int status = ENGINE_OK; status <= ENGINE_UNSUPPORTED + 1; status++) {
    CHECK(engine_status_text(static_cast<engine_status>(status))[0] != '\0');
  }
}

/* Callers, resizes, shutdowns and changes of the kernels at the same time, all with right results. */
void callers_at_once() {
  std::vector<std::thread> threads;
  for (uint32_t caller = 0; caller < 4; caller++) {
    threads.emplace_back([caller] {
      std::vector<float> x = numbers(150000, caller), values(x.size());
      for (int round = 0; round < 30; round++) {
        CHECK(engine_scale(out(values), in(x), 3.0f) == ENGINE_OK);
        for (size_t i = 0; i < x.size(); i += 1009) CHECK(values[i] == 3.0f * x[i]);
        engine_mt19937 generator;
        engine_mt_seed(&generator, caller);
        CHECK(engine_mt_randn(&generator, out(values)) == ENGINE_OK);
      }
    });
  }
  threads.emplace_back([] {
    std::vector<std::string> isas = supported_isas();
    for (int round = 0; round < 60; round++) {
      CHECK(engine_set_threads(1 + round % 7) == ENGINE_OK);
      CHECK(engine_set_isa(isas[static_cast<size_t>(round) % isas.size()].c_str()) == ENGINE_OK);
      if (round % 5 == 0) engine_shutdown();
    }
  });
  for (std::thread &thread : threads) thread.join();
}

/* A thread that leaves a processor runs on others alone, all that it could use before, and respects another choice. */
void processors() {
  using namespace latentkit;
#if defined(__linux__)
  std::thread([] {
    cpu_set_t all, after;
    CHECK(sched_getaffinity(0, sizeof all, &all) == 0);
    Avoidance avoidance;
    for (int round = 0; round < 20; round++) {
      const int before = current_processor();
      avoidance.leave(before);
      cpu_set_t others = all;
      if (CPU_COUNT(&all) > 1) CPU_CLR(before, &others);
      CHECK(sched_getaffinity(0, sizeof after, &after) == 0 && CPU_EQUAL(&others, &after));
      CHECK(CPU_ISSET(current_processor(), &others));
    }
    cpu_set_t first;
    CPU_ZERO(&first);
    CPU_SET(current_processor(), &first);
    if (CPU_COUNT(&all) < 2) return;
    for (pid_t id : {0, getpid()}) CHECK(sched_setaffinity(id, sizeof first, &first) == 0);
    const int alone = current_processor();
    avoidance.leave(alone); /* there is no other one */
    CHECK(current_processor() == alone);
    avoidance.leave(-1);
    avoidance.leave(1 << 20);
    CHECK(sched_getaffinity(0, sizeof after, &after) == 0 && CPU_EQUAL(&first, &after));
    for (pid_t id : {0, getpid()}) CHECK(sched_setaffinity(id, sizeof all, &all) == 0);
    avoidance.leave(alone);
    CPU_CLR(alone, &all);
    CHECK(sched_getaffinity(0, sizeof after, &after) == 0 && CPU_EQUAL(&all, &after));
  }).join();
#endif
}

struct Tally {
  std::mutex mutex;
  std::condition_variable changed;
  int done = 0;

  void add() {
    std::lock_guard<std::mutex> lock(mutex);
    done++;
    changed.notify_all();
  }
  void wait_for(int count) {
    std::unique_lock<std::mutex> lock(mutex);
    changed.wait(lock, [&] { return done >= count; });
    CHECK(done == count);
  }
};

void background_jobs() {
  Tally tally;
  CHECK(engine_set_threads(4) == ENGINE_OK);
  CHECK(engine_submit(nullptr, nullptr) == ENGINE_BAD_ARGUMENT);
  auto work = [](void *data) {
    std::vector<float> values(100000, 1.0f);
    CHECK(engine_scale(out(values), in(values), 2.0f) == ENGINE_OK);
    CHECK(values.back() == 2.0f);
    static_cast<Tally *>(data)->add();
  };
  for (int i = 0; i < 100; i++) CHECK(engine_submit(work, &tally) == ENGINE_OK);
  tally.wait_for(100);
  // a shutdown finishes what is queued; work of work too
  for (int i = 0; i < 50; i++) {
    CHECK(engine_submit(
              [](void *data) {
                CHECK(engine_submit([](void *inner) { static_cast<Tally *>(inner)->add(); }, data) == ENGINE_OK);
              },
              &tally) == ENGINE_OK);
  }
  engine_shutdown();
  tally.wait_for(150);
  // threads start anew
  CHECK(engine_submit([](void *data) { static_cast<Tally *>(data)->add(); }, &tally) == ENGINE_OK);
  tally.wait_for(151);
}

void submit_against_shutdown() {
  Tally tally;
  std::vector<std::thread> threads;
  for (int caller = 0; caller < 3; caller++) {
    threads.emplace_back([&tally] {
      for (int i = 0; i < 200; i++) {
        CHECK(engine_submit([](void *data) { static_cast<Tally *>(data)->add(); }, &tally) == ENGINE_OK);
      }
    });
  }
  for (int caller = 0; caller < 2; caller++) {
    threads.emplace_back([] {
      for (int i = 0; i < 40; i++) engine_shutdown();
    });
  }
  for (std::thread &thread : threads) thread.join();
  tally.wait_for(600);
}

/* On a background thread a shutdown leaves that thread alone instead of waiting for itself. */
void shutdown_from_work() {
  Tally tally;
  auto work = [](void *data) {
    engine_shutdown();
    static_cast<Tally *>(data)->add();
  };
  for (int i = 0; i < 5; i++) CHECK(engine_submit(work, &tally) == ENGINE_OK);
  tally.wait_for(5);
}

void blocks_are_apart() {
  std::vector<uint8_t *> taken;
  for (size_t i = 0; i < 20; i++) {
    const size_t bytes = (i % 5 + 1) << 16;
    auto *block = static_cast<uint8_t *>(engine_scratch_take(bytes));
    CHECK(block != nullptr && reinterpret_cast<uintptr_t>(block) % 16 == 0);
    std::memset(block, static_cast<int>(i), bytes);
    taken.push_back(block);
  }
  for (size_t i = 0; i < taken.size(); i++) {
    for (size_t at = 0; at < (i % 5 + 1) << 16; at += 4096) CHECK(taken[i][at] == i);
  }
  for (uint8_t *block : taken) engine_scratch_give(block);
}

void blocks_of_any_size() {
  for (const size_t bytes : {size_t{0}, size_t{1}, size_t{65535}, size_t{65536}, size_t{65537}, size_t{48} << 20}) {
    auto *block = static_cast<uint8_t *>(engine_scratch_take(bytes));
    CHECK(block != nullptr);
    if (bytes > 0) block[0] = block[bytes - 1] = 1;
    engine_scratch_give(block);
  }
  CHECK(engine_scratch_take(SIZE_MAX) == nullptr);
  CHECK(engine_scratch_take(SIZE_MAX - 64) == nullptr);
  engine_scratch_give(nullptr);
}

}  // namespace

int main() {
  settings();
  processors();
  callers_at_once();
  background_jobs();
  submit_against_shutdown();
  shutdown_from_work();
  blocks_are_apart();
  blocks_of_any_size();
  engine_shutdown();
  blocks_are_apart();
  return report();
}
