// The search for matches: chains of positions with equal hashes, one step of laziness, prices instead of lengths.
#include <algorithm>
#include <array>
#include <cstring>
#include <new>

#include "deflate.h"
#include "dispatch.h"
#include "little.h"
#include "scratch.h"

namespace latentkit::deflate {
namespace {

constexpr int kHashBits = 15;
constexpr int kDepth = 8;           /* positions of a chain looked at */
constexpr size_t kNice = 32;        /* as long as this: taken without a look further */
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

uint32_t read32(const uint8_t *p) {
  uint32_t v;
  std::memcpy(&v, p, 4);
  return v;
}

/* Equal bytes at a and b, which lies before a, up to `most`. */
size_t common(const uint8_t *a, const uint8_t *b, size_t most) {
  size_t n = 0;
  for (; n + 8 <= most; n += 8) {
    const uint64_t differ = little64(a + n) ^ little64(b + n);
    if (differ == 0) continue;
    return n + static_cast<size_t>(__builtin_ctzll(differ)) / 8;
  }
  while (n < most && a[n] == b[n]) n++;
  return n;
}

/* Warm memory for n objects that need no destructor; NULL where there is none. Bodies on the pool must not throw. */
template <class T>
class Held {
 public:
  explicit Held(size_t n) : block_(static_cast<uint8_t *>(engine_scratch_take(n * sizeof(T)))) {}
  T *get() const { return reinterpret_cast<T *>(block_.get()); }

 private:
  Scratch block_;
};

struct Match {
  size_t length = 0, distance = 0;
};

class Matcher {
 public:
  /* base: the first byte that matches may reach; end: of all data. */
  Matcher(const uint8_t *base, const uint8_t *end)
      : base_(base), hashed_(end - base < 8 ? 0 : static_cast<size_t>(end - base) - 7) {}

  void enter(size_t from, size_t to, size_t step = 1) {
    for (size_t at = from; at < std::min(to, hashed_); at += step) insert(at);
  }
  void prepare(const Unit &unit);
  /* Every `step`th position of the window before `at`, and nothing else. */
  void enter_window(size_t at, size_t step) {
    heads_.fill(0);
    enter(std::max(at, kWindow) - kWindow, at, step);
    has_window_ = step == 1;
  }
  bool search(Unit &unit);

 private:
  /* Of the bytes that the key takes; units with another key leave entries that find() sees through. */
  size_t hash(size_t at) const {
    return (little64(base_ + at) << key_shift_) * 0x9E3779B97F4A7C15u >> (64 - kHashBits);
  }
  void insert(size_t at) {
    uint32_t &head = heads_[hash(at)];
    chain_[at % kWindow] = head;
    head = static_cast<uint32_t>(at) + 1;
  }
  Match find(size_t at, size_t end, size_t longer_than);
  bool pays(size_t at, const Match &match) const;

  const uint8_t *base_;
  size_t hashed_; /* positions below have a hash */
  size_t last_distance_ = 1;
  int key_shift_ = 32;
  bool has_window_ = false; /* every position of it */
  bool was_vain_ = false; /* the unit before was given up */
  std::array<uint32_t, size_t{1} << kHashBits> heads_; /* position + 1; 0: none */
  std::array<uint32_t, kWindow> chain_;
  std::array<uint16_t, 256> prices_;
};

/* The longest match at a position that may be hashed; enters it. */
Match Matcher::find(size_t at, size_t end, size_t longer_than) {
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
  for (int k = 0; k < kDepth && next != 0 && best.length < kNice; k++) {
    const size_t before = next - 1;
    if (at - before > kWindow) break;
    try_at(before);
    const uint32_t older = chain_[before % kWindow];
    if (older >= next) break;  // overwritten by a position a window later
    next = older;
  }
  // the last distance again, where the chain has only a farther one: parts of long matches are not in it
  if (at >= last_distance_ && (best.distance == 0 || best.distance > last_distance_)) {
    const size_t length = common(here, here - last_distance_, most);
    if (length > best.length || (best.distance != 0 && length == best.length)) best = {length, last_distance_};
  }
  return best.distance == 0 ? Match{} : best;
}

/* The key takes so many bytes that literals would cost more than a match: chains hold nothing that is not worth it. */
void Matcher::prepare(const Unit &unit) {
  literal_prices(unit.counts, prices_.data());
  uint64_t sum = 0;
  for (size_t i = 0; i < 256; i++) sum += uint64_t{prices_[i]} * unit.counts.literal[i];
  key_shift_ = 64 - 8 * static_cast<int>(std::clamp<uint64_t>(kKeyPrice * unit.len / sum, kMinMatch, 8));
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
  const size_t begin = static_cast<size_t>(unit.raw - base_), end = begin + unit.len, last = std::min(end, hashed_);
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
  else if (!has_window_) enter_window(begin, !is_taken && glance < kTrial ? kSparse : 1);
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
        if (!has_window_) {
          enter_window(begin, 1);
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
    Match match = find(at, end, 0);
    if (match.length == 0 || !pays(at, match)) {
      const size_t next = at + 1 + std::min((at - counted) >> patience, kLongestLeap);
      enter(at + 1, next);
      at = next;
      continue;
    }
    size_t entered = at + 1;
    while (match.length < kLazy && at + 1 < last) {
      const Match later = find(at + 1, end, match.length);
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
    enter(entered, at);
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
