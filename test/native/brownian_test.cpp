// Cuts of a Brownian path against a plain loop over the definition.
#include <algorithm>

#include "check.h"

namespace {

// both halves of the root, the halves of its right half, and of the left half of that
const std::vector<engine_cut> kCuts = {
    {0, 11, 2, 0, 0.5f, 1.25f, 0.4f},
    {2, 12, 0, 0, 0.3f, 2.5f, 0.2f},
    {3, 13, 3, 0, 0.07f, 6.0f, 0.11f},
};

/* More cuts than generators that are seeded at once: the left half, again and again. */
std::vector<engine_cut> way_down() {
  std::vector<engine_cut> cuts;
  for (uint32_t i = 0; i < 20; i++)
    cuts.push_back({i == 0 ? 0 : 2 * i - 1, 30 + i, i == 0 ? 0 : i + 1, 0, 0.5f, 1.25f, 0.4f});
  return cuts;
}

std::vector<float> normals(uint32_t seed, size_t n) {
  std::vector<float> z(n);
  engine_mt19937 generator;
  engine_mt_seed(&generator, seed);
  CHECK(engine_mt_randn(&generator, out(z)) == ENGINE_OK);
  return z;
}

/* The nodes of the cuts, by their numbers. */
std::vector<std::vector<float>> nodes_of(const std::vector<float> &root, const std::vector<engine_cut> &cuts) {
  std::vector<std::vector<float>> nodes = {root};
  for (const engine_cut &cut : cuts) {
    const std::vector<float> whole = nodes[cut.node], z = normals(cut.seed, root.size());
    std::vector<float> left(root.size()), right(root.size());
    for (size_t i = 0; i < root.size(); i++) {
      left[i] = whole[i] * cut.length * cut.reciprocal + z[i] * cut.spread;
      right[i] = whole[i] - left[i];
    }
    nodes.push_back(left);
    nodes.push_back(right);
  }
  return nodes;
}

constexpr size_t kGap = 3; /* floats of a row behind the elements of the longest range */

/* Ends of up to `count` ranges of n elements, each about twice as long as all that follow it. */
std::vector<uint32_t> ranges_of(size_t n, size_t count) {
  std::vector<uint32_t> ends;
  size_t begin = 0;
  for (size_t i = 1; i < count && n - begin >= 48; i++) {
    begin += (n - begin) / 3 * 2 / 16 * 16;
    ends.push_back(static_cast<uint32_t>(begin));
  }
  ends.push_back(static_cast<uint32_t>(n));
  return ends;
}

engine_status run(std::vector<float> &to, const std::vector<float> &root, std::vector<float> &lefts, size_t pitch,
                  const std::vector<uint32_t> &ends, const std::vector<engine_cut> &cuts,
                  const std::vector<uint32_t> &terms) {
  return engine_brownian(out(to), in(root), out(lefts), pitch, ends.data(), ends.size(), cuts.data(), cuts.size(),
                         terms.data(), terms.size(), -0.7f);
}

/* The elements of a row, range by range; is_gap_kept says whether the floats behind them are as they were. */
std::vector<float> row_of(const std::vector<float> &lefts, size_t pitch, const std::vector<uint32_t> &ends, size_t rows,
                          size_t row, bool *is_gap_kept) {
  std::vector<float> elements;
  *is_gap_kept = true;
  for (size_t i = 0; i < ends.size(); i++) {
    const size_t length = ends[i] - (i == 0 ? 0 : ends[i - 1]);
    const float *begin = lefts.data() + (i * rows + row) * pitch;
    elements.insert(elements.end(), begin, begin + length);
    *is_gap_kept = *is_gap_kept && std::all_of(begin + length, begin + pitch, [](float x) { return x == 9.0f; });
  }
  return elements;
}

void against_loop(const std::vector<engine_cut> &cuts, const std::vector<uint32_t> &terms, size_t n, size_t ranges) {
  const size_t rows = cuts.size() + 1;
  const std::vector<uint32_t> ends = ranges_of(n, ranges);
  const size_t pitch = ends[0] + kGap;
  const std::vector<float> root = numbers(n, 5);
  const std::vector<std::vector<float>> nodes = nodes_of(root, cuts);
  std::vector<float> lefts;
  const std::vector<float> got = everywhere([&] {
    std::vector<float> first(n), again(n);
    lefts.assign(ends.size() * rows * pitch, 9.0f);
    CHECK(run(first, root, lefts, pitch, ends, cuts, terms) == ENGINE_OK);
    std::vector<engine_cut> drawn = cuts;
    for (engine_cut &cut : drawn) cut.drawn = 1;
    drawn[2].drawn = 0;
    CHECK(run(again, root, lefts, pitch, ends, drawn, terms) == ENGINE_OK);
    CHECK(same_bytes(first, again));
    return first;
  });
  std::vector<float> expected(n);
  for (size_t i = 0; i < n; i++) {
    float sum = nodes[terms[0]][i];
    for (size_t k = 1; k < terms.size(); k++) sum = sum + nodes[terms[k]][i];
    expected[i] = sum / -0.7f;
  }
  CHECK(same_bytes(expected, got));
  bool is_gap_kept;
  for (size_t cut = 0; cut < cuts.size(); cut++) {
    CHECK(same_bytes(nodes[2 * cut + 1], row_of(lefts, pitch, ends, rows, cuts[cut].row, &is_gap_kept)));
    CHECK(is_gap_kept);
  }
  // no cut has the second row
  CHECK(same_bytes(std::vector<float>(n, 9.0f), row_of(lefts, pitch, ends, rows, 1, &is_gap_kept)));
}

void against_loop(const std::vector<engine_cut> &cuts, const std::vector<uint32_t> &terms) {
  for (size_t n : {size_t{1}, size_t{15}, size_t{16}, size_t{17}, size_t{1024}, size_t{1025}, size_t{70001}}) {
    for (size_t ranges : {size_t{1}, size_t{2}, size_t{5}}) against_loop(cuts, terms, n, ranges);
  }
}

void refusals() {
  const size_t n = 40;
  std::vector<float> root(n), to(n), lefts(4 * n), short_root(n - 1), bad_rows(4 * n + 1);
  const auto status = [&](const std::vector<engine_cut> &cuts, const std::vector<uint32_t> &terms) {
    return run(to, root, lefts, n, {n}, cuts, terms);
  };
  CHECK(run(to, short_root, lefts, n, {n}, kCuts, {1}) == ENGINE_BAD_LENGTH);
  CHECK(run(to, root, bad_rows, n, {n}, kCuts, {1}) == ENGINE_BAD_LENGTH);
  CHECK(run(to, root, lefts, n - 1, {n}, kCuts, {1}) == ENGINE_BAD_LENGTH);
  CHECK(run(to, root, lefts, 0, {n}, kCuts, {1}) == ENGINE_BAD_LENGTH);
  CHECK(status(kCuts, {}) == ENGINE_BAD_ARGUMENT);
  CHECK(status(kCuts, {7}) == ENGINE_BAD_ARGUMENT);
  std::vector<engine_cut> later = kCuts, shared = kCuts;
  std::vector<engine_cut> beyond = kCuts;
  later[1].node = 3;
  shared[1].row = 2;
  beyond[1].row = 4;
  CHECK(status(later, {1}) == ENGINE_BAD_ARGUMENT);
  CHECK(status(shared, {1}) == ENGINE_BAD_ARGUMENT);
  CHECK(status(beyond, {1}) == ENGINE_BAD_ARGUMENT);
  CHECK(status({}, {0}) == ENGINE_OK);
}

/* Ends that do not rise to n, fall within a block, leave less than a block, or make a range that no row holds. */
void refused_ranges() {
  const size_t n = 40, pitch = 24;
  std::vector<float> root(n), to(n), lefts(8 * pitch);
  const auto status = [&](const std::vector<uint32_t> &ends) { return run(to, root, lefts, pitch, ends, kCuts, {1}); };
  CHECK(status({16, 40}) == ENGINE_OK);
  for (const std::vector<uint32_t> &ends : std::vector<std::vector<uint32_t>>{
           {}, {16}, {16, 41}, {41}, {40}, {17, 40}, {32, 16, 40}, {16, 16, 32, 40}, {16, 40, 40}, {40, 16}}) {
    CHECK(status(ends) == ENGINE_BAD_LENGTH);
  }
  CHECK(run(to, root, lefts, 32, {32, 40}, kCuts, {1}) == ENGINE_BAD_LENGTH);
  // rows that are not as many for every range
  std::vector<float> seven(7 * pitch);
  CHECK(run(to, root, seven, pitch, {16, 40}, kCuts, {1}) == ENGINE_BAD_LENGTH);
}

}  // namespace

int main() {
  against_loop(kCuts, {5, 6, 4});
  against_loop(kCuts, {1, 5});
  against_loop(kCuts, {0});
  against_loop(kCuts, {6});
  against_loop(way_down(), {39, 38, 2});
  refusals();
  refused_ranges();
  return report();
}
