// Literals and matches of a search in one unit, and whether the search pays.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <new>
#include <utility>

#include "chains.h"
#include "deflate.h"
#include "runtime/dispatch.h"

namespace latentkit::deflate {

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
  /* True where matches save one of `share` bits of the bytes from begin() to counted(). In photographs they save next
   * to nothing and take ten times as long as all the rest. */
  bool saves(uint64_t share) const {
    Counts plain;
    count(plain, base_ + begin_, base_ + counted_);
    const uint64_t bits = cost(plain);
    return cost(counts_) < bits - bits / share;
  }
  /* Bytes in matches since the last call. */
  size_t take_covered() { return std::exchange(covered_, 0); }

  /* Gives the matches to the unit where that is smaller than literals alone. False where memory is short. */
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
