// An increment of a Brownian path: each range of elements is drawn and cut by itself, piece by piece.
#include <algorithm>
#include <vector>

#include "noise/generators.h"
#include "runtime/runtime.h"

// decisions: Each thread draws its own range of a Brownian path
namespace latentkit {
namespace {

constexpr size_t kBlock = 16;       /* normals that torch makes together */
constexpr size_t kMostRanges = 256; /* as threads */

struct Request {
  engine_f32 out;
  engine_cf32 root;
  engine_f32 lefts;
  size_t pitch;
  const uint32_t *ends;
  size_t ranges;
  const engine_cut *cuts;
  size_t count;
  const uint32_t *terms;
  size_t term_count;
  float divisor;

  size_t rows() const { return lefts.len / (ranges * pitch); }
};

/* Elements [begin, end) of a request, and the memory that only they use. */
struct Range {
  size_t begin, end;
  float *lefts;               /* [rows, pitch] */
  float *rights;              /* [count, LK_PIECE] */
  lk_cut *cuts;               /* [count] */
  lk_part *terms;             /* [term_count] */
  engine_mt19937 *generators; /* [kSeededAtOnce] */
};

bool are_ends(const uint32_t *ends, size_t ranges, size_t n, size_t pitch) {
  if (ranges < 1 || ranges > kMostRanges) return false;
  size_t begin = 0;
  for (size_t i = 0; i < ranges; i++) {
    const size_t end = ends[i];
    if (end < begin || end > n || end - begin > pitch || (end < n && end % kBlock != 0)) return false;
    begin = end;
  }
  // normals of the last range begin with a whole block: torch draws the last 16 elements again
  return begin == n && (ranges == 1 || n - ends[ranges - 2] >= kBlock);
}

engine_status check(const Request &at) {
  if (at.root.len != at.out.len || at.pitch == 0 || !are_ends(at.ends, at.ranges, at.out.len, at.pitch)) {
    return ENGINE_BAD_LENGTH;
  }
  if (at.lefts.len % at.pitch != 0 || at.lefts.len / at.pitch % at.ranges != 0) return ENGINE_BAD_LENGTH;
  const size_t rows = at.rows();
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

/* Writes the normals of all fresh cuts where their left halves will be. */
void draw(const Request &at, const Plan &plan, const Range &range) {
  for (size_t first = 0; first < plan.fresh.size(); first += kSeededAtOnce) {
    uint32_t seeds[kSeededAtOnce] = {};
    const size_t count = std::min(kSeededAtOnce, plan.fresh.size() - first);
    for (size_t k = 0; k < count; k++) seeds[k] = at.cuts[plan.fresh[first + k]].seed;
    mt_seed_together(range.generators, seeds, count);
    for (size_t k = 0; k < count; k++) {
      engine_mt19937 &generator = range.generators[k];
      mt_skip(generator, range.begin);
      float *row = range.lefts + at.cuts[plan.fresh[first + k]].row * at.pitch;
      engine_mt_randn(&generator, {row, range.end - range.begin});
    }
  }
}

/* Makes the cuts over the normals of the fresh ones, then their sum. */
void cut(const Request &at, const Plan &plan, const Range &range) {
  const auto left_of = [&](size_t i) { return range.lefts + at.cuts[i].row * at.pitch; };
  const auto right_of = [&](size_t i) { return range.rights + i * LK_PIECE; };
  const auto part = [&](uint32_t node) -> lk_part {
    if (node == 0) return {at.root.data + range.begin, 0};
    const size_t i = (node - 1) / 2;
    return node % 2 == 1 ? lk_part{left_of(i), 0} : lk_part{right_of(i), 1};
  };
  size_t count = 0;
  for (size_t i = 0; i < at.count; i++) {
    const engine_cut &from = at.cuts[i];
    float *right = plan.right[i] ? right_of(i) : nullptr;
    if (from.drawn && right == nullptr) continue;
    range.cuts[count++] = {part(from.node), left_of(i),        right, from.length, from.reciprocal,
                           from.spread,     from.drawn ? 1 : 0};
  }
  for (size_t i = 0; i < at.term_count; i++) range.terms[i] = part(at.terms[i]);
  kernels().cut_range(at.out.data + range.begin, range.cuts, count, range.terms, at.term_count, at.divisor,
                      range.end - range.begin);
}

constexpr size_t to_line(size_t bytes) { return (bytes + 63) / 64 * 64; }

engine_status run(const Request &at) {
  const Plan plan(at);
  const size_t rights = to_line(at.count * LK_PIECE * sizeof(float));
  const size_t cuts = to_line(at.count * sizeof(lk_cut)), terms = to_line(at.term_count * sizeof(lk_part));
  const size_t bytes = rights + cuts + terms + to_line(kSeededAtOnce * sizeof(engine_mt19937));
  const Scratch memory = scratch(at.ranges * bytes);
  for_chunks(at.ranges, [&](size_t i) {
    uint8_t *own = memory.get() + i * bytes;
    const Range range{i == 0 ? 0 : at.ends[i - 1],
                      at.ends[i],
                      at.lefts.data + i * at.rows() * at.pitch,
                      reinterpret_cast<float *>(own),
                      reinterpret_cast<lk_cut *>(own + rights),
                      reinterpret_cast<lk_part *>(own + rights + cuts),
                      reinterpret_cast<engine_mt19937 *>(own + rights + cuts + terms)};
    draw(at, plan, range);
    cut(at, plan, range);
  });
  return ENGINE_OK;
}

}  // namespace
}  // namespace latentkit

engine_status engine_brownian(engine_f32 out, engine_cf32 root, engine_f32 lefts, size_t pitch, const uint32_t *ends,
                              size_t ranges, const engine_cut *cuts, size_t count, const uint32_t *terms,
                              size_t term_count, float divisor) {
  using namespace latentkit;
  const Request request{out, root, lefts, pitch, ends, ranges, cuts, count, terms, term_count, divisor};
  return guarded([&] {
    const engine_status status = check(request);
    return status == ENGINE_OK ? run(request) : status;
  });
}
