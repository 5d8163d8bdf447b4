// Earlier positions in binary trees, ordered by the bytes that follow them: every longer match, the nearest of each length.
#ifndef LATENTKIT_DEFLATE_TREE_H
#define LATENTKIT_DEFLATE_TREE_H

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include "deflate.h"
#include "deflate_chains.h"
#include "little.h"

namespace latentkit::deflate {

class Tree {
 public:
  static constexpr size_t kMostMatches = 16; /* at one position */

  /* Positions count from base, the first byte that matches may reach; end: of all data. depth: nodes looked at. */
  Tree(const uint8_t *base, const uint8_t *end, int depth, size_t nice)
      : base_(base), len_(static_cast<size_t>(end - base)), depth_(depth), nice_(nice) {
    heads_.fill(0);
    nearest_.fill(0);
  }

  /* Enters the position; each match is longer than the one before. Returns how many there are. Every position is entered
   * once, in order. */
  size_t find(size_t at, Match found[kMostMatches]);

 private:
  static constexpr int kTreeBits = 16, kNearestBits = 13;

  static size_t hash(uint64_t bytes, int bits) { return bytes * 0x9E3779B97F4A7C15u >> (64 - bits); }

  const uint8_t *base_;
  size_t len_;
  int depth_;
  size_t nice_;
  std::array<uint32_t, size_t{1} << kTreeBits> heads_;      /* position + 1 by four bytes; 0: none */
  std::array<uint32_t, size_t{1} << kNearestBits> nearest_; /* the same by three bytes */
  std::array<uint32_t, 2 * kWindow> children_; /* of a position: those of smaller bytes, those of greater ones */
};

inline size_t Tree::find(size_t at, Match found[kMostMatches]) {
  if (len_ - at < 8) return 0;
  const uint8_t *here = base_ + at;
  const size_t most = std::min(len_ - at, kMaxMatch), nice = std::min(nice_, most);
  const uint64_t bytes = little64(here);
  size_t count = 0, longest = kMinMatch - 1;
  const auto in_reach = [&](uint32_t entry) { return entry != 0 && at - (entry - 1) < kWindow; };

  uint32_t &nearest = nearest_[hash(bytes << 40, kNearestBits)];
  if (in_reach(nearest) && ((bytes ^ little64(base_ + nearest - 1)) & 0xFFFFFF) == 0)
    found[count++] = {3, at - (nearest - 1)};
  nearest = static_cast<uint32_t>(at) + 1;

  uint32_t &head = heads_[hash(bytes << 32, kTreeBits)], next = head;
  head = static_cast<uint32_t>(at) + 1;
  uint32_t *smaller = &children_[2 * (at % kWindow)], *greater = smaller + 1;
  size_t smaller_length = 0, greater_length = 0;
  for (int k = 0; k < depth_ && in_reach(next); k++) {
    const size_t before = next - 1;
    const uint8_t *there = base_ + before;
    uint32_t *const child = &children_[2 * (before % kWindow)];
    size_t length = std::min(smaller_length, greater_length);
    length += common(here + length, there + length, most - length);
    if (length > longest) {
      longest = length;
      found[std::min(count, kMostMatches - 1)] = {length, at - before};
      count = std::min(count + 1, kMostMatches);
    }
    if (length >= nice) {
      // the position takes the place of one that goes on alike
      *smaller = child[0];
      *greater = child[1];
      return count;
    }
    if (there[length] < here[length]) {
      *smaller = next;
      smaller = child + 1;
      next = *smaller;
      smaller_length = length;
    } else {
      *greater = next;
      greater = child;
      next = *greater;
      greater_length = length;
    }
  }
  *smaller = *greater = 0;
  return count;
}

}  // namespace latentkit::deflate

#endif
