// PyTorch's CPU generator: 16 values and more by pairs of blocks in float32, fewer by single draws in double.
#include <atomic>
#include <cmath>
#include <cstring>
#include <mutex>
#include <thread>

#include "lk_libm.h"
#include "mt19937.h"
#include "runtime/dispatch.h"
#include "runtime/parallel.h"
#include "runtime/threads.h"

// decisions 59, 60
namespace latentkit {
namespace {

constexpr size_t kWords = LK_MT_WORDS;
constexpr size_t kBlock = 16;
// multiples of kBlock
constexpr size_t kChunk = 16384; /* words that a thread draws at once where several draw */
constexpr size_t kPiece = 4096;  /* words that a thread alone draws at once: they stay in the first cache */

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

/* For the microsecond that a draw takes: a mutex would put the thread to sleep, and waking costs more than the draw. */
class Turn {
 public:
  void lock() {
    for (int tries = 0; taken_.exchange(true, std::memory_order_acquire); tries++) {
      // where the holder has lost its processor
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
  // torch draws the last 16 anew, over values that are already done
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
