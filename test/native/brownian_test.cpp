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

engine_status run(std::vector<float> &to, const std::vector<float> &root, std::vector<float> &lefts,
                  const std::vector<engine_cut> &cuts, const std::vector<uint32_t> &terms) {
  const size_t rows = std::max(cuts.size(), kCuts.size()) + 1;
  return engine_brownian(out(to), in(root), out(lefts), lefts.size() / rows, cuts.data(), cuts.size(), terms.data(),
                         terms.size(), -0.7f);
}

void against_loop(const std::vector<engine_cut> &cuts, const std::vector<uint32_t> &terms) {
  const size_t rows = cuts.size() + 1;
  for (size_t n : {size_t{1}, size_t{15}, size_t{16}, size_t{17}, size_t{1024}, size_t{1025}, size_t{70001}}) {
    const std::vector<float> root = numbers(n, 5);
    const std::vector<std::vector<float>> nodes = nodes_of(root, cuts);
    std::vector<float> lefts;
    const std::vector<float> got = everywhere([&] {
      std::vector<float> first(n), again(n);
      lefts.assign(rows * (n + 3), 9.0f);
      CHECK(run(first, root, lefts, cuts, terms) == ENGINE_OK);
      std::vector<engine_cut> drawn = cuts;
      for (engine_cut &cut : drawn) cut.drawn = 1;
      drawn[2].drawn = 0;
      CHECK(run(again, root, lefts, drawn, terms) == ENGINE_OK);
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
    for (size_t cut = 0; cut < cuts.size(); cut++) {
      const float *row = lefts.data() + cuts[cut].row * (n + 3);
      CHECK(same_bytes(nodes[2 * cut + 1], std::vector<float>(row, row + n)));
    }
    // no cut has the second row, nor the end of one
    for (size_t i = 0; i < n + 3; i++) CHECK(lefts[n + 3 + i] == 9.0f);
    for (size_t row = 0; row < rows; row++) CHECK(lefts[row * (n + 3) + n] == 9.0f);
  }
}

void refusals() {
  const size_t n = 20;
  std::vector<float> root(n), to(n), lefts(4 * n), short_root(n - 1), bad_rows(4 * n + 1), short_rows(4 * n - 4);
  CHECK(run(to, short_root, lefts, kCuts, {1}) == ENGINE_BAD_LENGTH);
  CHECK(run(to, root, bad_rows, kCuts, {1}) == ENGINE_BAD_LENGTH);
  CHECK(run(to, root, short_rows, kCuts, {1}) == ENGINE_BAD_LENGTH);
  CHECK(run(to, root, lefts, kCuts, {}) == ENGINE_BAD_ARGUMENT);
  CHECK(run(to, root, lefts, kCuts, {7}) == ENGINE_BAD_ARGUMENT);
  std::vector<engine_cut> later = kCuts, shared = kCuts;
  std::vector<engine_cut> beyond = kCuts;
  later[1].node = 3;
  shared[1].row = 2;
  beyond[1].row = 4;
  CHECK(run(to, root, lefts, later, {1}) == ENGINE_BAD_ARGUMENT);
  CHECK(run(to, root, lefts, shared, {1}) == ENGINE_BAD_ARGUMENT);
  CHECK(run(to, root, lefts, beyond, {1}) == ENGINE_BAD_ARGUMENT);
  CHECK(run(to, root, lefts, {}, {0}) == ENGINE_OK);
}

}  // namespace

int main() {
  against_loop(kCuts, {5, 6, 4});
  against_loop(kCuts, {1, 5});
  against_loop(kCuts, {0});
  against_loop(kCuts, {6});
  against_loop(way_down(), {39, 38, 2});
  refusals();
  return report();
}
