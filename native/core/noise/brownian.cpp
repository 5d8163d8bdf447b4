// An increment of a Brownian path: normals of all cuts side by side, then the cuts piece by piece of the elements.
#include <atomic>
#include <cstring>
#include <thread>
#include <vector>

#include "runtime/dispatch.h"
#include "runtime/parallel.h"
#include "runtime/scratch.h"
#include "runtime/spans.h"

namespace latentkit {
namespace {

/* Elements whose cuts are made at once: the right halves of a request fit into the first cache. */
constexpr size_t kPiece = 256;

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

/* Writes a cut's normals where its left half will be. */
void draw(const Request &at, size_t cut) {
  engine_mt19937 generator;
  engine_mt_seed(&generator, at.cuts[cut].seed);
  engine_mt_randn(&generator, {at.row(cut), at.out.len});
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
      if (!cut.drawn) fresh.push_back(i);
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

void wait_for(const std::atomic<size_t> &drawn, size_t count) {
  for (int tries = 0; drawn.load(std::memory_order_acquire) < count; tries++) {
    // at most as long as one draw takes, unless another thread has lost its processor
    if (tries >= 256) std::this_thread::yield();
#if defined(__x86_64__)
    else __builtin_ia32_pause();
#endif
  }
}

engine_status run(const Request &at) {
  const Plan plan(at);
  const std::vector<size_t> &fresh = plan.fresh;
  const size_t pieces = (at.out.len + kPiece - 1) / kPiece;
  std::atomic<size_t> drawn{0};
  std::atomic<bool> failed{false};
  // chunks are taken in order, so a piece waits only for draws that are under way
  for_chunks(fresh.size() + pieces, [&](size_t chunk) {
    if (chunk < fresh.size()) {
      draw(at, fresh[chunk]);
      drawn.fetch_add(1, std::memory_order_release);
      return;
    }
    wait_for(drawn, fresh.size());
    const size_t begin = (chunk - fresh.size()) * kPiece;
    const size_t left = at.out.len - begin;
    const size_t rights = at.count * kPiece * sizeof(float);
    auto *memory = static_cast<uint8_t *>(engine_scratch_take(rights + at.term_count * sizeof(float *)));
    if (memory == nullptr) return failed.store(true, std::memory_order_relaxed);
    make_piece(at, plan, begin, left < kPiece ? left : kPiece, reinterpret_cast<float *>(memory),
               reinterpret_cast<const float **>(memory + rights));
    engine_scratch_give(memory);
  });
  return failed ? ENGINE_NO_MEMORY : ENGINE_OK;
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
