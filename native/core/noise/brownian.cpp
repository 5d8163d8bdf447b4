// An increment of a Brownian path: each thread draws its range of the elements of all cuts, then cuts it piece by
// piece.
#include <algorithm>
#include <atomic>
#include <thread>
#include <vector>

#include "mt19937.h"
#include "runtime/dispatch.h"
#include "runtime/parallel.h"
#include "runtime/scratch.h"
#include "runtime/spans.h"
#include "runtime/threads.h"

namespace latentkit {
namespace {

/* Elements whose cuts are made at once: the right halves that a request needs fit into the first cache. */
constexpr size_t kPiece = 192;
constexpr size_t kBlock = 16;        /* normals that torch makes together */
constexpr size_t kLeastRange = 4096; /* elements that are worth a thread */
constexpr size_t kMostRanges = 16;   /* each begins a drawing later than the one before it */

struct Request {
  engine_f32 out;
  engine_cf32 root;
  engine_f32 lefts;
  const engine_cut *cuts;
  size_t count;
  const uint32_t *terms;
  size_t term_count;
  float divisor;

  size_t pitch;

  float *row(size_t cut) const { return lefts.data + cuts[cut].row * pitch; }
};

engine_status check(const Request &at) {
  const size_t n = at.out.len;
  if (at.root.len != n || at.pitch < n || at.pitch == 0 || at.lefts.len % at.pitch != 0) return ENGINE_BAD_LENGTH;
  const size_t rows = at.lefts.len / at.pitch;
  std::vector<bool> taken(rows);
  for (size_t i = 0; i < at.count; i++) {
    const engine_cut &cut = at.cuts[i];
    if (cut.node > 2 * i || cut.row >= rows || taken[cut.row]) return ENGINE_BAD_ARGUMENT;
    taken[cut.row] = true;
  }
  for (size_t i = 0; i < at.term_count; i++) {
    if (at.terms[i] > 2 * at.count) return ENGINE_BAD_ARGUMENT;
  }
  return at.term_count == 0 ? ENGINE_BAD_ARGUMENT : ENGINE_OK;
}

/* What a request has to compute: a cut that was drawn before is a left half to read, and no more than that. */
struct Plan {
  std::vector<size_t> fresh;
  std::vector<bool> right; /* by cut */

  explicit Plan(const Request &at) : right(at.count) {
    std::vector<bool> wanted(2 * at.count + 1);
    for (size_t i = 0; i < at.term_count; i++) wanted[at.terms[i]] = true;
    for (size_t i = at.count; i-- > 0;) {
      const engine_cut &cut = at.cuts[i];
      right[i] = wanted[2 * i + 2];
      if (right[i] || !cut.drawn) wanted[cut.node] = true;
    }
    for (size_t i = 0; i < at.count; i++) {
      if (!at.cuts[i].drawn) fresh.push_back(i);
    }
  }
};

/* Makes the cuts of n elements from `begin` on, then their sum. rights [count, kPiece] is scratch. */
void make_piece(const Request &at, const Plan &plan, size_t begin, size_t n, float *rights, const float **terms) {
  const lk_kernels &kernel = kernels();
  const auto node = [&](uint32_t index) -> const float * {
    if (index == 0) return at.root.data + begin;
    const size_t cut = (index - 1) / 2;
    return index % 2 == 1 ? at.row(cut) + begin : rights + cut * kPiece;
  };
  for (size_t i = 0; i < at.count; i++) {
    const engine_cut &cut = at.cuts[i];
    float *left = at.row(i) + begin, *right = plan.right[i] ? rights + i * kPiece : nullptr;
    if (!cut.drawn) {
      kernel.bridge(left, right, node(cut.node), cut.length, cut.reciprocal, cut.spread, n);
    } else if (right != nullptr) {
      kernel.axpy(right, node(cut.node), left, -1.0f, n, 0);
    }
  }
  for (size_t i = 0; i < at.term_count; i++) terms[i] = node(at.terms[i]);
  kernel.divided_sum(at.out.data + begin, terms, at.term_count, at.divisor, n);
}

/* The generators of the fresh cuts, from which the ranges draw in turn: each begins where the one before it ended. */
class Generators {
 public:
  Generators(const Request &at, const Plan &plan, size_t ranges)
      : at_(at),
        fresh_(plan.fresh),
        ranges_(ranges),
        memory_(scratch(groups() * kSeededAtOnce * sizeof(engine_mt19937))) {}

  /* Writes the normals of all fresh cuts, elements [begin, end), where their left halves will be. Ranges begin in their
   * order, so that no one waits for a range that nobody works on. */
  void draw(size_t range, size_t begin, size_t end) {
    const size_t shared = fresh_.size() - std::min(range, fresh_.size());
    const auto normals_of = [&](size_t k, engine_mt19937 &generator) {
      engine_mt_randn(&generator, {at_.row(fresh_[k]) + begin, end - begin});
    };
    // a range would wait for the ranges before it as long as these drawings take
    for (size_t k = shared; k < fresh_.size(); k++) {
      engine_mt19937 own;
      engine_mt_seed(&own, at_.cuts[fresh_[k]].seed);
      mt_skip(own, begin);
      normals_of(k, own);
    }
    for (size_t k = 0; k < shared; k++) {
      if (range == 0) {
        if (k % kSeededAtOnce == 0) seed(k);
        normals_of(k, generator(k));
      } else {
        wait_for(drawn_[range - 1].cuts, k);
        // a copy: writing to lines that the range before holds takes longer than reading them
        engine_mt19937 own = generator(k);
        normals_of(k, own);
        if (range + 1 < ranges_) generator(k) = own;
      }
      drawn_[range].cuts.store(k + 1, std::memory_order_release);
    }
  }

 private:
  /* Cuts that a range has drawn, alone on its line of the cache. */
  struct alignas(64) Drawn {
    std::atomic<size_t> cuts{0};
  };

  size_t groups() const { return (fresh_.size() + kSeededAtOnce - 1) / kSeededAtOnce; }

  engine_mt19937 &generator(size_t k) const { return reinterpret_cast<engine_mt19937 *>(memory_.get())[k]; }

  void seed(size_t first) const {
    uint32_t seeds[kSeededAtOnce] = {};
    const size_t count = std::min(kSeededAtOnce, fresh_.size() - first);
    for (size_t i = 0; i < count; i++) seeds[i] = at_.cuts[fresh_[first + i]].seed;
    mt_seed_together(&generator(first), seeds);
  }

  static void wait_for(const std::atomic<size_t> &cuts, size_t k) {
    constexpr int kLooks = 10000; /* a drawing takes less time, unless its thread has no processor */
    for (int look = 0; cuts.load(std::memory_order_acquire) <= k; look++) {
      if (look < kLooks) relax();
      else std::this_thread::yield();
    }
  }

  const Request &at_;
  const std::vector<size_t> &fresh_;
  const size_t ranges_;
  const Scratch memory_;
  Drawn drawn_[kMostRanges];
};

engine_status run(const Request &at) {
  const Plan plan(at);
  const size_t n = at.out.len, threads = static_cast<size_t>(engine_threads());
  const size_t ranges = std::clamp<size_t>(n / kLeastRange, 1, std::min(threads, kMostRanges));
  const auto range_begin = [&](size_t range) { return range == ranges ? n : n / ranges * range / kBlock * kBlock; };
  const size_t rights = at.count * kPiece * sizeof(float), bytes = rights + at.term_count * sizeof(float *);
  const Scratch memory = scratch(ranges * bytes);
  Generators generators(at, plan, ranges);
  // a thread has the same elements in every request: its normals never leave its caches
  for_chunks(ranges, [&](size_t range) {
    const size_t begin = range_begin(range), end = range_begin(range + 1);
    generators.draw(range, begin, end);
    uint8_t *own = memory.get() + range * bytes;
    for (size_t piece = begin; piece < end; piece += kPiece) {
      make_piece(at, plan, piece, end - piece < kPiece ? end - piece : kPiece, reinterpret_cast<float *>(own),
                 reinterpret_cast<const float **>(own + rights));
    }
  });
  return ENGINE_OK;
}

}  // namespace
}  // namespace latentkit

engine_status engine_brownian(engine_f32 out, engine_cf32 root, engine_f32 lefts, size_t pitch, const engine_cut *cuts,
                              size_t count, const uint32_t *terms, size_t term_count, float divisor) {
  using namespace latentkit;
  const Request request{out, root, lefts, cuts, count, terms, term_count, divisor, pitch};
  return guarded([&] {
    const engine_status status = check(request);
    return status == ENGINE_OK ? run(request) : status;
  });
}
