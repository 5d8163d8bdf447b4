// PyTorch's generators: MT19937 of the CPU and Philox of CUDA.
#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <mutex>
#include <thread>

#include "lk_libm.h"
#include "noise/generators.h"
#include "runtime/runtime.h"
#include "runtime/threads.h"
#include "shared/checks.h"

// The last 624 raw words are the state: the recurrence needs nothing else.
// Words are drawn in order under a lock and turned into normals in parallel: the same bits with any number of threads.
/* ---- MT19937: 16 values and more by pairs of blocks in float32, fewer by single draws in double ---- */
namespace latentkit {
namespace {

constexpr size_t kWords = LK_MT_WORDS;
constexpr size_t kBlock = 16;
// multiples of kBlock
constexpr size_t kChunk = 16384; /* words that a thread draws at once if several draw */
constexpr size_t kPiece = 4096;  /* words that a single thread draws at once: they stay in the first cache */

void refresh(engine_mt19937 &generator) {
  uint32_t fresh[kWords];
  kernels().mt_extend(generator.state, fresh, kWords);
  generator.next = 0;
}

uint32_t tempered(uint32_t word) {
  word ^= word >> 11;
  word ^= (word << 7) & 0x9d2c5680u;
  word ^= (word << 15) & 0xefc60000u;
  return word ^ (word >> 18);
}

uint32_t draw(engine_mt19937 &generator) {
  if (generator.next >= kWords) refresh(generator);
  return tempered(generator.state[generator.next++]);
}

/* The n next words, not yet tempered. */
void draw_raw(engine_mt19937 &generator, uint32_t *out, size_t n) {
  size_t left = kWords - generator.next;
  size_t count = n < left ? n : left;
  std::memcpy(out, generator.state + generator.next, count * sizeof(uint32_t));
  generator.next += static_cast<uint32_t>(count);
  out += count;
  n -= count;
  if (n >= kWords) {
    kernels().mt_extend(generator.state, out, n);
  } else if (n > 0) {
    refresh(generator);
    std::memcpy(out, generator.state, n * sizeof(uint32_t));
    generator.next = static_cast<uint32_t>(n);
  }
}

double uniform53(engine_mt19937 &generator) {
  uint64_t high = draw(generator);
  uint64_t both = high << 32 | draw(generator);
  return static_cast<double>(both & ((uint64_t{1} << 53) - 1)) * 0x1p-53;
}

float single_normal(engine_mt19937 &generator) {
  if (generator.has_normal != 0) {
    generator.has_normal = 0;
    return static_cast<float>(generator.normal);
  }
  double u1 = uniform53(generator), u2 = uniform53(generator);
  double radius = std::sqrt(-2.0 * lk_log1p(-u2)), angle = 6.283185307179586 * u1;
  generator.normal = radius * lk_sin(angle);
  generator.has_normal = 1;
  return static_cast<float>(radius * lk_cos(angle));
}

/* A lock for the microsecond that a draw takes: a mutex would put the thread to sleep, and waking it costs more. */
class Turn {
 public:
  void lock() {
    for (int tries = 0; taken_.exchange(true, std::memory_order_acquire); tries++) {
      // the holder has lost its processor
      if (tries >= kTries) {
        std::this_thread::yield();
      } else {
        relax();
      }
    }
  }
  void unlock() { taken_.store(false, std::memory_order_release); }

 private:
  static constexpr int kTries = 256;
  std::atomic<bool> taken_{false};
};

/* The words after the last whole block are drawn as well, as torch draws them; they become no normals. */
void fill_alone(engine_mt19937 &generator, float *out, size_t n) {
  alignas(64) uint32_t words[kPiece];
  for (size_t begin = 0; begin < n; begin += kPiece) {
    const size_t count = n - begin < kPiece ? n - begin : kPiece;
    draw_raw(generator, words, count);
    kernels().mt_normals(out + begin, words, count / kBlock);
  }
}

void fill_together(engine_mt19937 &generator, float *out, size_t n) {
  // chunks are drawn in order, one thread at a time, and turned into normals side by side: same bits with any threads
  Turn drawing;
  size_t drawn = 0;
  for_chunks((n + kChunk - 1) / kChunk, [&](size_t) {
    size_t begin, count;
    uint32_t *words;
    {
      std::lock_guard<Turn> turn(drawing);
      begin = drawn;
      count = n - begin < kChunk ? n - begin : kChunk;
      drawn += count;
      words = reinterpret_cast<uint32_t *>(out + begin);
      draw_raw(generator, words, count);
    }
    kernels().mt_normals(out + begin, words, count / kBlock);
  });
}

void fill_normals(engine_mt19937 &generator, float *out, size_t n) {
  if (n > ENGINE_PARALLEL_MIN) {
    fill_together(generator, out, n);
  } else {
    fill_alone(generator, out, n);
  }
  // torch draws the last 16 again, over values that are already done
  if (n % kBlock != 0) fill_alone(generator, out + (n - kBlock), kBlock);
}

void begin(engine_mt19937 &generator) {
  generator.next = kWords;
  generator.has_normal = 0;
  generator.normal = 0.0;
}

}  // namespace

void mt_seed_together(engine_mt19937 *generators, const uint32_t *seeds, size_t count) {
  static_assert(sizeof(engine_mt19937) % sizeof(uint32_t) == 0);
  kernels().mt_seed(generators->state, sizeof(engine_mt19937) / sizeof(uint32_t), seeds, count);
  for (size_t k = 0; k < count; k++) begin(generators[k]);
}

void mt_skip(engine_mt19937 &generator, size_t n) {
  uint32_t words[4 * kWords];
  while (n > 0) {
    const size_t count = n < 4 * kWords ? n : 4 * kWords;
    draw_raw(generator, words, count);
    n -= count;
  }
}

}  // namespace latentkit

void engine_mt_seed(engine_mt19937 *generator, uint64_t seed) {
  const uint32_t word = static_cast<uint32_t>(seed);
  latentkit::kernels().mt_seed(generator->state, 0, &word, 1);
  latentkit::begin(*generator);
}

engine_status engine_mt_randn(engine_mt19937 *generator, engine_f32 out) {
  // the state may come from a caller's bytes
  if (generator->next > latentkit::kWords) return ENGINE_BAD_ARGUMENT;
  if (out.len >= latentkit::kBlock) {
    latentkit::fill_normals(*generator, out.data, out.len);
  } else {
    for (size_t i = 0; i < out.len; i++) out.data[i] = latentkit::single_normal(*generator);
  }
  return ENGINE_OK;
}

/* ---- Philox: which thread of which row of its launch gives which element ---- */
namespace latentkit {
namespace {

/* Elements of one row's lane: n elements, rows of 4 lanes of `threads` each. */
size_t lane_length(size_t n, size_t row_start, size_t lane, size_t threads) {
  size_t start = row_start + lane * threads;
  return start >= n ? 0 : std::min(n - start, threads);
}

/* Threads [begin, end) of one row, whose lanes end at different threads. */
void fill_row(float *out, size_t n, size_t row, size_t threads, size_t begin, size_t end, uint64_t seed,
              uint64_t counter, float k) {
  size_t row_start = row * 4 * threads;
  while (begin < end) {
    float *lanes[4] = {};
    size_t stop = end;
    for (size_t lane = 0; lane < 4; lane++) {
      size_t length = lane_length(n, row_start, lane, threads);
      if (length <= begin) break;
      lanes[lane] = out + row_start + lane * threads + begin;
      stop = std::min(stop, length);
    }
    if (lanes[0] == nullptr) return;
    kernels().philox_normals(lanes, stop - begin, seed, counter + row, begin, k);
    begin = stop;
  }
}

}  // namespace
}  // namespace latentkit

engine_status engine_philox_randn(engine_f32 out, uint64_t seed, uint64_t *offset, uint32_t threads, float k) {
  using namespace latentkit;
  PhiloxLaunch launch;
  const engine_status status = check_philox(out.len, *offset, threads, &launch);
  if (status != ENGINE_OK || out.len == 0) return status;
  const size_t grid = launch.threads;
  const size_t rows = launch.rows;
  size_t pieces = (grid + kGrain - 1) / kGrain;
  auto chunk = [&](size_t index) {
    size_t begin = index % pieces * kGrain;
    fill_row(out.data, out.len, index / pieces, grid, begin, std::min(begin + kGrain, grid), seed, *offset / 4, k);
  };
  if (out.len > ENGINE_PARALLEL_MIN) {
    for_chunks(rows * pieces, chunk);
  } else {
    for (size_t i = 0; i < rows * pieces; i++) chunk(i);
  }
  *offset += launch.moved();
  return ENGINE_OK;
}

engine_status engine_philox_skip(size_t n, uint64_t *offset, uint32_t threads) {
  latentkit::PhiloxLaunch launch;
  const engine_status status = latentkit::check_philox(n, *offset, threads, &launch);
  if (status == ENGINE_OK) *offset += launch.moved();
  return status;
}

engine_status engine_philox_words(engine_u32 out, uint64_t seed, uint64_t offset, uint32_t threads) {
  using namespace latentkit;
  size_t n = out.len / 4;
  if (out.len % 4 != 0) return ENGINE_BAD_LENGTH;
  PhiloxLaunch launch;
  const engine_status status = check_philox(n, offset, threads, &launch);
  if (status != ENGINE_OK || n == 0) return status;
  const size_t grid = launch.threads;
  for (size_t start = 0; start < n; start += grid) {
    uint32_t *rows[4];
    for (size_t k = 0; k < 4; k++) rows[k] = out.data + k * n + start;
    kernels().philox_words(rows, std::min(grid, n - start), seed, offset / 4 + start / (4 * grid), 0);
  }
  return ENGINE_OK;
}
