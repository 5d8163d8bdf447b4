// The search for matches: where it pays, one step of laziness, prices instead of lengths.
#include <algorithm>
#include <array>
#include <cstring>
#include <new>

#include "deflate.h"
#include "deflate_chains.h"
#include "dispatch.h"
#include "scratch.h"

namespace latentkit::deflate {
namespace {

constexpr size_t kLazy = 8;         /* shorter: the next position is tried too */
constexpr size_t kPriced = 12;      /* shorter: compared with the literals it replaces */
constexpr size_t kKept = 24;        /* of a long match these many last positions can be found again */
constexpr size_t kTrial = 8192;      /* bytes, twice in a unit, that decide whether the search goes on */
constexpr uint64_t kLeastShare = 12; /* one of so many bits must be saved there */
constexpr size_t kGlance = 1024;     /* bytes past a line, after which a trial may be without hope */
constexpr uint64_t kLeastHope = 48;  /* one of so many bits must be saved there */
constexpr size_t kSparse = 8;       /* before that, one of so many positions of the window can be found */
constexpr int kPatience = 3;        /* log2 of the literals without a match after which it leaps over one more byte */
constexpr int kTired = 2;           /* the same where few of the last kTrial bytes were in matches */
constexpr size_t kLeastCovered = 8; /* one of so many must be */
constexpr size_t kLongestLeap = 64; /* the bytes leapt over can be found again */
constexpr uint64_t kKeyPrice = 20 * 256;   /* of the bytes that are hashed */
constexpr uint32_t kMatchPrice = 11 * 256; /* of a match, before the distance's extra bits; 1/256 bits */

/* Warm memory for n objects that need no destructor; NULL where there is none. Bodies on the pool must not throw. */
template <class T>
class Held {
 public:
  explicit Held(size_t n) : block_(static_cast<uint8_t *>(engine_scratch_take(n * sizeof(T)))) {}
  T *get() const { return reinterpret_cast<T *>(block_.get()); }

 private:
  Scratch block_;
};

class Matcher {
 public:
  /* base: the first byte that matches may reach; end: of all data. */
  Matcher(const uint8_t *base, const uint8_t *end) : base_(base), chains_(base, end) {}

  void prepare(const Unit &unit);
  bool search(Unit &unit);

 private:
  bool pays(size_t at, const Match &match) const;

  const uint8_t *base_;
  size_t last_distance_ = 1;
  bool was_vain_ = false; /* the unit before was given up */
  Chains chains_;
  std::array<uint16_t, 256> prices_;
};

/* The key takes so many bytes that literals would cost more than a match: chains hold nothing that is not worth it. */
void Matcher::prepare(const Unit &unit) {
  literal_prices(unit.counts, prices_.data());
  uint64_t sum = 0;
  for (size_t i = 0; i < 256; i++) sum += uint64_t{prices_[i]} * unit.counts.literal[i];
  chains_.set_key(std::clamp<size_t>(kKeyPrice * unit.len / sum, kMinMatch, kMostKey));
}

bool Matcher::pays(size_t at, const Match &match) const {
  if (match.length >= kPriced) return true;
  uint32_t literals = 0;
  for (size_t k = 0; k < match.length; k++) literals += prices_[base_[at + k]];
  return literals > kMatchPrice + 256 * distance_symbol(match.distance).extra_bits;
}

void count(Counts &counts, const uint8_t *from, const uint8_t *to) {
  constexpr size_t kFew = 256;
  if (from + kFew <= to) kernels().count_bytes(counts.literal, from, static_cast<size_t>(to - from));
  else
    for (; from < to; from++) counts.literal[*from]++;
}

/* Whether one of `share` bits of the bytes [from, to) is saved by what was found there. In photographs matches save next
 * to nothing and take ten times as long as all the rest. */
bool saves(uint64_t share, const uint8_t *from, const uint8_t *to, const Counts &found) {
  Counts plain;
  count(plain, from, to);
  const uint64_t bits = cost(plain);
  return cost(found) < bits - bits / share;
}

bool Matcher::search(Unit &unit) {
  const size_t begin = static_cast<size_t>(unit.raw - base_), end = begin + unit.len, last = std::min(end, chains_.hashed());
  const Held<lk_sequence> sequences(unit.len / kMinMatch + 1);
  if (sequences.get() == nullptr) return false;
  Counts counts;
  size_t at = begin, done = begin, found = 0;
  size_t counted = begin; /* literals from `from` to here are in counts */
  const size_t middle = begin + unit.len / 2;
  const bool is_tried = unit.len >= 4 * kTrial, is_dense = 2 * (cost(unit.counts) >> kBit) >= 3 * unit.len;
  const size_t glance = is_dense ? std::min(kTrial, unit.line + kGlance) : kTrial;
  bool is_taken = !is_tried && !is_dense; /* the search goes on to the end */
  size_t from = begin, trial = is_taken ? end : begin + glance, covered = 0;
  int patience = kPatience;
  const auto start_at = [&](size_t next) {
    counts = {};
    found = 0;
    done = begin;
    counted = from = at = next;
    trial = next + glance;
  };
  const auto go_on = [&](int with) {
    is_taken = true;
    patience = with;
    covered = 0;
    trial = is_dense ? at + kTrial : end;
  };
  // where the unit above gave up, one look is enough
  if (is_tried && is_dense && was_vain_) start_at(middle);
  else if (!chains_.has_window()) chains_.enter_window(begin, !is_taken && glance < kTrial ? kSparse : 1);
  was_vain_ = false;
  while (at < last) {
    if (at >= trial && is_taken) {
      go_on(covered * kLeastCovered < kTrial ? kTired : kPatience);
    } else if (at >= trial) {
      count(counts, base_ + counted, base_ + at);
      counted = at;
      const auto pays_off = [&](uint64_t share) { return saves(share, base_ + from, base_ + at, counts); };
      if (at < from + kTrial && pays_off(kLeastHope)) {
        trial = from + kTrial;
        // only now it is worth while to know all of what lies before
        if (!chains_.has_window()) {
          chains_.enter_window(begin, 1);
          start_at(from);
        }
      } else if (at >= from + kTrial && pays_off(kLeastShare)) {
        go_on(kPatience);
      } else if (!is_tried) {
        go_on(kTired);  // what is short is searched to the end
      } else if (at < middle) {
        start_at(middle);
      } else {
        was_vain_ = true;
        return true;
      }
    }
    Match match = chains_.find(at, end, 0, last_distance_);
    if (match.length == 0 || !pays(at, match)) {
      const size_t next = at + 1 + std::min((at - counted) >> patience, kLongestLeap);
      chains_.enter(at + 1, next);
      at = next;
      continue;
    }
    size_t entered = at + 1;
    while (match.length < kLazy && at + 1 < last) {
      const Match later = chains_.find(at + 1, end, match.length, last_distance_);
      entered = at + 2;
      if (later.length == 0 || !pays(at + 1, later)) break;
      match = later;
      at++;
    }
    // back over what was skipped
    const auto reaches_back = [&] { return base_[at - 1] == base_[at - 1 - match.distance]; };
    for (; at > std::max(counted, match.distance) && match.length < kMaxMatch && reaches_back(); at--) match.length++;
    count(counts, base_ + counted, base_ + at);
    const Symbol length = length_symbol(match.length), distance = distance_symbol(match.distance);
    counts.literal[length.symbol]++;
    counts.distance[distance.symbol]++;
    counts.extra_bits += length.extra_bits + distance.extra_bits;
    sequences.get()[found++] = {static_cast<uint32_t>(at - done), static_cast<uint16_t>(match.length),
                               static_cast<uint16_t>(match.distance)};
    last_distance_ = match.distance;
    covered += match.length;
    at = done = counted = at + match.length;
    if (match.length > 4 * kKept) entered = std::max(entered, at - kKept);
    chains_.enter(entered, at);
  }
  count(counts, base_ + counted, base_ + end);
  count(counts, base_ + begin, base_ + from);
  if (cost(counts) >= cost(unit.counts)) return true;
  unit.sequences.reset(new (std::nothrow) lk_sequence[found]);
  if (unit.sequences == nullptr) return false;
  std::copy_n(sequences.get(), found, unit.sequences.get());
  unit.counts = counts;
  unit.sequence_count = found;
  return true;
}

}  // namespace

Symbol length_symbol(size_t length) {
  const auto d = static_cast<uint32_t>(length - 3);
  if (length == kMaxMatch) return {285, 0};
  if (d < 8) return {257 + d, 0};
  const auto extra = 29u - static_cast<uint32_t>(__builtin_clz(d));
  return {257 + 4 * extra + (d >> extra), extra};
}

Symbol distance_symbol(size_t distance) {
  const auto d = static_cast<uint32_t>(distance - 1);
  if (d < 4) return {d, 0};
  const auto extra = 30u - static_cast<uint32_t>(__builtin_clz(d));
  return {2 * extra + (d >> extra), extra};
}

bool match_units(std::vector<Unit> &units, size_t first, size_t last) {
  const Held<Matcher> room(1);
  if (room.get() == nullptr) return false;
  Matcher *matcher = nullptr;
  for (size_t u = first; u < last; u++) {
    if (!units[u].repeats) {
      matcher = nullptr;
      continue;
    }
    if (matcher == nullptr) {
      const uint8_t *base = units[u].raw;
      const size_t before = std::min(static_cast<size_t>(base - units[0].raw), kWindow);
      matcher = new (room.get()) Matcher(base - before, units.back().raw + units.back().len);
    }
    matcher->prepare(units[u]);
    if (!matcher->search(units[u])) return false;
  }
  return true;
}

}  // namespace latentkit::deflate
