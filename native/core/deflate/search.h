// The state of a search: chains of positions that find matches, and the literals and matches found so far.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <new>
#include <utility>

#include "deflate/deflate.h"
#include "runtime/runtime.h"

namespace latentkit::deflate {

constexpr int kHashBits = 15;
constexpr size_t kMostKey = 8; /* bytes that are hashed */

inline uint32_t read32(const uint8_t *p) {
  uint32_t v;
  std::memcpy(&v, p, 4);
  return v;
}

/* Equal bytes at a and b, which lies before a, up to `most`. */
inline size_t common(const uint8_t *a, const uint8_t *b, size_t most) {
  size_t n = 0;
  for (; n + 8 <= most; n += 8) {
    const uint64_t differ = little64(a + n) ^ little64(b + n);
    if (differ == 0) continue;
    return n + static_cast<size_t>(__builtin_ctzll(differ)) / 8;
  }
  while (n < most && a[n] == b[n]) n++;
  return n;
}

struct Match {
  size_t length = 0, distance = 0;
};

class Chains {
 public:
  /* Positions count from base, the first byte that matches may reach; end: of all data. */
  Chains(const uint8_t *base, const uint8_t *end)
      : base_(base), hashed_(end - base < 8 ? 0 : static_cast<size_t>(end - base) - 7) {}

  /* Positions below have a hash. */
  size_t hashed() const { return hashed_; }
  /* How many bytes are hashed from now on; entries with another key are left, find() sees through them. */
  void set_key(size_t bytes) { key_shift_ = 64 - 8 * static_cast<int>(bytes); }
  void set_effort(const Effort &effort) {
    max_chain_ = effort.max_chain;
    nice_length_ = effort.nice_length;
  }

  void enter(size_t from, size_t to, size_t step = 1) {
    for (size_t at = from; at < std::min(to, hashed_); at += step) insert(at);
  }
  /* Every `step`th position of the window before `at`, and nothing else; needed before the first find(). */
  void enter_window(size_t at, size_t step) {
    heads_.fill(0);
    enter(std::max(at, kWindow) - kWindow, at, step);
    has_window_ = step == 1;
  }
  /* Every position of a window was entered. */
  bool has_window() const { return has_window_; }

  /* The longest match at a position below hashed() that ends by `end` and is longer than `longer_than`; length 0 if
   * there is none. Enters the position. */
  Match find(size_t at, size_t end, size_t longer_than, size_t last_distance);

 private:
  size_t hash(size_t at) const {
    return (little64(base_ + at) << key_shift_) * 0x9E3779B97F4A7C15u >> (64 - kHashBits);
  }
  void insert(size_t at) {
    uint32_t &head = heads_[hash(at)];
    chain_[at % kWindow] = head;
    head = static_cast<uint32_t>(at) + 1;
  }

  const uint8_t *base_;
  size_t hashed_;
  int max_chain_ = 1;
  size_t nice_length_ = kMaxMatch;
  int key_shift_ = 32;
  bool has_window_ = false;
  std::array<uint32_t, size_t{1} << kHashBits> heads_; /* position + 1; 0: none */
  std::array<uint32_t, kWindow> chain_;
};

inline Match Chains::find(size_t at, size_t end, size_t longer_than, size_t last_distance) {
  const uint8_t *here = base_ + at;
  const size_t most = std::min(end - at, kMaxMatch);
  Match best{std::max(longer_than, kMinMatch - 1), 0};
  const auto try_at = [&](size_t before) {
    const uint8_t *there = base_ + before;
    // the last four bytes of a longer match: they differ more often than the first
    const size_t tail = best.length - 3;
    if (best.length >= most || read32(there + tail) != read32(here + tail)) return;
    const size_t length = common(here, there, most);
    if (length > best.length) best = {length, at - before};
  };
  uint32_t next = heads_[hash(at)];
  insert(at);
  for (int k = 0; k < max_chain_ && next != 0 && best.length < nice_length_; k++) {
    const size_t before = next - 1;
    if (at - before > kWindow) break;
    try_at(before);
    const uint32_t older = chain_[before % kWindow];
    if (older >= next) break;  // overwritten by a position a window later
    next = older;
  }
  // the last distance again, if the chain has only a farther one: parts of long matches are not in it
  if (at >= last_distance && (best.distance == 0 || best.distance > last_distance)) {
    const size_t length = common(here, here - last_distance, most);
    if (length > best.length || (best.distance != 0 && length == best.length)) best = {length, last_distance};
  }
  return best.distance == 0 ? Match{} : best;
}

inline void count(Counts &counts, const uint8_t *from, const uint8_t *to) {
  constexpr size_t kFew = 256;
  if (from + kFew <= to) kernels().count_bytes(counts.literal, from, static_cast<size_t>(to - from));
  else
    for (; from < to; from++) counts.literal[*from]++;
}

/* Literals and matches of one unit, in order. Positions count from the matcher's base. */
class Sequences {
 public:
  /* memory: for a match every kMinMatch bytes. */
  Sequences(const uint8_t *base, size_t unit_begin, lk_sequence *memory)
      : base_(base), unit_begin_(unit_begin), begin_(unit_begin), counted_(unit_begin), sequences_(memory) {}

  /* Drops all matches: the bytes up to `at` are literals. */
  void restart(size_t at) {
    counts_ = {};
    size_ = 0;
    begin_ = counted_ = at;
    covered_ = 0;
  }
  void add_literals(size_t to) {
    count(counts_, base_ + counted_, base_ + to);
    counted_ = to;
  }
  void add_match(size_t at, const Match &match) {
    const size_t literals = at - (size_ == 0 ? unit_begin_ : match_end_);
    add_literals(at);
    const Symbol length = length_symbol(match.length), distance = distance_symbol(match.distance);
    counts_.literal[length.symbol]++;
    counts_.distance[distance.symbol]++;
    counts_.extra_bits += length.extra_bits + distance.extra_bits;
    sequences_[size_++] = {static_cast<uint32_t>(literals), static_cast<uint16_t>(match.length),
                           static_cast<uint16_t>(match.distance)};
    covered_ += match.length;
    counted_ = match_end_ = at + match.length;
  }

  /* Position of the last restart. */
  size_t begin() const { return begin_; }
  /* Literals from here on are not in the counts yet; no later match begins before. */
  size_t counted() const { return counted_; }
  /* True if matches save one of `share` bits of the bytes from begin() to counted(). In photographs they save next
   * to nothing and take ten times as long as all the rest. */
  bool saves(uint64_t share) const {
    Counts plain;
    count(plain, base_ + begin_, base_ + counted_);
    const uint64_t bits = cost(plain);
    return cost(counts_) < bits - bits / share;
  }
  /* Bytes in matches since the last call. */
  size_t take_covered() { return std::exchange(covered_, 0); }

  /* Gives the matches to the unit if that is smaller than literals alone. False if memory is short. */
  bool finish(Unit &unit) {
    add_literals(unit_begin_ + unit.len);
    count(counts_, base_ + unit_begin_, base_ + begin_);
    if (cost(counts_) >= unit.plain_cost) return true;
    unit.sequences.reset(new (std::nothrow) lk_sequence[size_]);
    if (unit.sequences == nullptr) return false;
    std::copy_n(sequences_, size_, unit.sequences.get());
    unit.counts = counts_;
    unit.sequence_count = size_;
    return true;
  }

 private:
  const uint8_t *base_;
  size_t unit_begin_, begin_, counted_, match_end_ = 0, size_ = 0, covered_ = 0;
  lk_sequence *sequences_;
  Counts counts_;
};

}  // namespace latentkit::deflate
