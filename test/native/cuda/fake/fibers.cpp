// The threads of a block on one thread: fibers that take turns from one meeting to the next.
#include <sys/mman.h>
#include <ucontext.h>

#include <cstdlib>
#include <cstring>
#include <memory>

#include "kernels/platform.h"
#include "state.h"

thread_local lk_index threadIdx, blockIdx, blockDim, gridDim;

namespace fake {
namespace {

constexpr size_t kStack = 256 << 10;

enum class Phase { running, block, warp, ended };

struct Fiber {
  ucontext_t context;
  Phase phase = Phase::running;
  /* Values of the last two exchanges: a quick neighbour may be one ahead. */
  unsigned char values[2][64];
  unsigned exchanges = 0;
};

struct Block {
  ucontext_t scheduler;
  std::vector<Fiber> fibers;
  unsigned current = 0;
  const std::function<void()> *body = nullptr;

  void wait_at(Phase phase) {
    const unsigned self = current;
    fibers[self].phase = phase;
    swapcontext(&fibers[self].context, &scheduler);
    threadIdx.x = self;
  }

  /* All of [begin, end) that have not ended are in this phase: let them go on. */
  bool release(unsigned begin, unsigned end, Phase phase) {
    bool waiting = false;
    for (unsigned i = begin; i < end; i++) {
      if (fibers[i].phase == Phase::running) return false;
      if (fibers[i].phase == Phase::ended) continue;
      if (fibers[i].phase != phase) return false;
      waiting = true;
    }
    for (unsigned i = begin; waiting && i < end; i++) {
      if (fibers[i].phase == phase) fibers[i].phase = Phase::running;
    }
    return waiting;
  }

  bool release() {
    const auto count = static_cast<unsigned>(fibers.size());
    bool some = release(0, count, Phase::block);
    for (unsigned i = 0; i < count; i += kWarp) some |= release(i, std::min(count, i + kWarp), Phase::warp);
    return some;
  }

  bool run();
};

thread_local Block *running = nullptr;

void start() {
  Block &block = *running;
  const unsigned self = block.current;
  threadIdx.x = self;
  (*block.body)();
  block.fibers[self].phase = Phase::ended;
  swapcontext(&block.fibers[self].context, &block.scheduler);
}

// apart: setjmp-like functions and the locals of one function do not mix
__attribute__((noinline)) char *stacks(unsigned count) {
  static char *memory = nullptr;
  static unsigned have = 0;
  if (count > have) {
    // never freed: the largest block of the process so far
    constexpr int kFlags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
    void *pages = mmap(nullptr, count * kStack, PROT_READ | PROT_WRITE, kFlags, -1, 0);
    if (pages == MAP_FAILED) std::abort();
    memory = static_cast<char *>(pages);
    have = count;
  }
  return memory;
}

bool Block::run() {
  char *stack = stacks(static_cast<unsigned>(fibers.size()));
  for (unsigned i = 0; i < fibers.size(); i++) {
    Fiber &fiber = fibers[i];
    fiber.phase = Phase::running;
    fiber.exchanges = 0;
    getcontext(&fiber.context);
    fiber.context.uc_stack.ss_sp = stack + i * kStack;
    fiber.context.uc_stack.ss_size = kStack;
    fiber.context.uc_link = nullptr;
    makecontext(&fiber.context, start, 0);
  }
  for (bool some = true; some; some = release()) {
    for (current = 0; current < fibers.size(); current++) {
      if (fibers[current].phase == Phase::running) swapcontext(&scheduler, &fibers[current].context);
    }
  }
  for (const Fiber &fiber : fibers) {
    if (fiber.phase != Phase::ended) return false;
  }
  return true;
}

}  // namespace

bool run_blocks(unsigned blocks, unsigned threads, bool together, const std::function<void()> &body) {
  gridDim.x = blocks;
  blockDim.x = threads;
  if (!together) {
    for (blockIdx.x = 0; blockIdx.x < blocks; blockIdx.x++) {
      for (threadIdx.x = 0; threadIdx.x < threads; threadIdx.x++) body();
    }
    return true;
  }
  Block block;
  block.fibers = std::vector<Fiber>(threads);
  block.body = &body;
  running = &block;
  bool met = true;
  for (unsigned i = 0; i < blocks && met; i++) {
    blockIdx.x = i;
    met = block.run();
  }
  running = nullptr;
  return met;
}

}  // namespace fake

void __syncthreads() { fake::running->wait_at(fake::Phase::block); }

void lk_exchange(const void *mine, void *theirs, size_t bytes, unsigned from) {
  fake::Block &block = *fake::running;
  const unsigned self = block.current;
  const unsigned turn = block.fibers[self].exchanges++ % 2;
  if (bytes > sizeof block.fibers[self].values[turn]) std::abort();
  std::memcpy(block.fibers[self].values[turn], mine, bytes);
  block.wait_at(fake::Phase::warp);
  std::memcpy(theirs, block.fibers[self - self % kWarp + from].values[turn], bytes);
}
