#include <array>
#include <cstring>
#include <random>
#include <string>

#include "check.h"
#include "engine.h"
#include "png_files.h"

using namespace png_files;

namespace {

constexpr uint64_t kMaxPixels = 1 << 20;

struct Decoded {
  engine_status status;
  engine_png_info info;
  Bytes pixels;
  const char *reason;
};

Decoded decode(const Bytes &file, uint64_t max_pixels = kMaxPixels) {
  Decoded d{};
  // exact allocation: a sanitizer sees the first byte past the end
  const Bytes exact(file);
  const engine_cu8 span{exact.data(), exact.size()};
  d.status = engine_png_inspect(span, max_pixels, &d.info, &d.reason);
  if (d.status != ENGINE_OK) return d;
  d.pixels.resize(d.info.bytes);
  d.status = engine_png_decode({d.pixels.data(), d.pixels.size()}, span, max_pixels, &d.reason);
  return d;
}

engine_status read_text(const Bytes &file, std::string *text) {
  engine_png_info info;
  const char *reason;
  const engine_cu8 span{file.data(), file.size()};
  const engine_status status = engine_png_inspect(span, kMaxPixels, &info, &reason);
  if (status != ENGINE_OK) return status;
  Bytes out(info.text_bytes);
  size_t written = 0;
  const engine_status result = engine_png_text({out.data(), out.size()}, span, &written, &reason);
  text->assign(out.begin(), out.begin() + static_cast<long>(written));
  return result;
}

Bytes encode(const Bytes &pixels, uint32_t width, uint32_t height, int channels, int level,
             const std::vector<engine_text> &text = {}, int bit_depth = 8) {
  const engine_png_options options{width, height, channels, level, bit_depth, text.data(), text.size()};
  Bytes file(engine_png_bound(&options));
  CHECK(!file.empty());
  size_t written = 0;
  CHECK(engine_png_encode({file.data(), file.size()}, {pixels.data(), pixels.size()}, &options, &written) == ENGINE_OK);
  file.resize(written);
  return file;
}

Bytes picture(size_t count, unsigned seed) {
  std::mt19937 random(seed);
  Bytes pixels(count);
  for (size_t i = 0; i < count; i++)
    pixels[i] = static_cast<uint8_t>(seed % 3 == 0 ? random() : seed % 3 == 1 ? i * 3 / 2 + (random() & 3) : i / 7);
  return pixels;
}

void round_trips() {
  unsigned seed = 0;
  for (int channels = 1; channels <= 4; channels++)
    for (const uint32_t width : {1u, 2u, 3u, 5u, 15u, 16u, 17u, 33u, 700u})
      for (const uint32_t height : {1u, 2u, 31u})
        for (const int level : {0, 1, 4, 9}) {
          const Bytes pixels = picture(size_t{width} * height * static_cast<size_t>(channels), seed++);
          const Bytes file = encode(pixels, width, height, channels, level);
          CHECK(file == encode(pixels, width, height, channels, level));
          const Decoded d = decode(file);
          CHECK(d.status == ENGINE_OK && d.info.bit_depth == 8 && d.info.channels == channels);
          CHECK(d.pixels == pixels);
        }
}

/* The decoder gives 16 bits in the machine's order, the encoder takes them big-endian. */
Bytes big_endian(const Bytes &samples) {
  Bytes out(samples.size());
  for (size_t i = 0; i + 1 < samples.size(); i += 2) {
    uint16_t sample;
    std::memcpy(&sample, samples.data() + i, sizeof sample);
    out[i] = static_cast<uint8_t>(sample >> 8);
    out[i + 1] = static_cast<uint8_t>(sample);
  }
  return out;
}

void deep_round_trips() {
  unsigned seed = 0;
  for (int channels = 1; channels <= 4; channels++)
    for (const uint32_t width : {1u, 3u, 16u, 33u, 700u})
      for (const uint32_t height : {1u, 31u})
        for (const int level : {0, 1, 3, 4, 9}) {
          const Bytes pixels = picture(size_t{width} * height * static_cast<size_t>(channels) * 2, seed++);
          const Bytes file = everywhere([&] { return encode(pixels, width, height, channels, level, {}, 16); });
          const Decoded d = decode(file);
          CHECK(d.status == ENGINE_OK && d.info.bit_depth == 16 && d.info.channels == channels);
          CHECK(big_endian(d.pixels) == pixels);
        }
}

void same_bytes_everywhere() {
  const Bytes pixels = picture(300 * 200 * 3, 1);
  everywhere([&] { return encode(pixels, 300, 200, 3, 4); });
}

void options_are_checked() {
  const engine_text no_key{"", "v", 0, 1}, nul_key{"a\0b", "v", 3, 1}, nul_value{"a", "\0", 1, 1};
  const Bytes long_key(80, 'k');
  const engine_text too_long{reinterpret_cast<const char *>(long_key.data()), "v", 80, 1};
  for (const engine_png_options &bad :
       {engine_png_options{0, 1, 3, 4, 8, nullptr, 0}, engine_png_options{1, 0, 3, 4, 8, nullptr, 0},
        engine_png_options{1, 1, 0, 4, 8, nullptr, 0}, engine_png_options{1, 1, 5, 4, 8, nullptr, 0},
        engine_png_options{1, 1, 3, 4, 0, nullptr, 0}, engine_png_options{1, 1, 3, 4, 12, nullptr, 0},
        engine_png_options{1, 1, 3, -1, 8, nullptr, 0}, engine_png_options{1, 1, 3, 10, 8, nullptr, 0},
        engine_png_options{0x80000000u, 1, 1, 4, 8, nullptr, 0},
        engine_png_options{1u << 20, 1u << 20, 4, 4, 8, nullptr, 0}, engine_png_options{1, 1, 1, 4, 8, &no_key, 1},
        engine_png_options{1, 1, 1, 4, 8, &nul_key, 1}, engine_png_options{1, 1, 1, 4, 8, &nul_value, 1},
        engine_png_options{1, 1, 1, 4, 8, &too_long, 1}}) {
    size_t written;
    CHECK(engine_png_bound(&bad) == 0);
    CHECK(engine_png_encode({nullptr, 0}, {nullptr, 0}, &bad, &written) == ENGINE_BAD_ARGUMENT);
  }
  const engine_png_options good{2, 2, 3, 4, 8, nullptr, 0};
  Bytes out(engine_png_bound(&good)), pixels(12);
  size_t written;
  CHECK(engine_png_encode({out.data(), out.size()}, {pixels.data(), 11}, &good, &written) == ENGINE_BAD_LENGTH);
  const size_t whole = encode(pixels, 2, 2, 3, 4).size();
  for (size_t room = 0; room <= whole; room++) {
    Bytes small(room);
    CHECK(engine_png_encode({small.data(), room}, {pixels.data(), 12}, &good, &written) ==
          (room < whole ? ENGINE_NO_SPACE : ENGINE_OK));
  }
}

/* Every colour type and depth, plain and interlaced, with random rows and filters. */
std::vector<Bytes> all_kinds() {
  std::vector<Bytes> files;
  std::mt19937 random(7);
  for (const uint8_t colour : {0, 2, 3, 4, 6})
    for (const uint8_t depth : {1, 2, 4, 8, 16})
      for (const uint8_t interlace : {0, 1})
        for (const bool has_transparency : {false, true}) {
          if (depth < 8 && colour != 0 && colour != 3) continue;
          if (depth == 16 && colour == 3) continue;
          const uint32_t width = 11, height = 9;
          Bytes raw;
          const auto add_rows = [&](size_t w, size_t h) {
            const size_t samples = colour == 2 ? 3 : colour == 4 ? 2 : colour == 6 ? 4 : 1;
            for (size_t y = 0; w > 0 && y < h; y++) {
              raw.push_back(static_cast<uint8_t>(random() % 5));
              // palettes are complete, so any index is fine
              for (size_t k = 0; k < (w * samples * depth + 7) / 8; k++) raw.push_back(static_cast<uint8_t>(random()));
            }
          };
          if (interlace == 0) add_rows(width, height);
          else
            for (const auto &[x0, y0, dx, dy] : {std::array<size_t, 4>{0, 0, 8, 8},
                                                 {4, 0, 8, 8},
                                                 {0, 4, 4, 8},
                                                 {2, 0, 4, 4},
                                                 {0, 2, 2, 4},
                                                 {1, 0, 2, 2},
                                                 {0, 1, 1, 2}})
              add_rows((width - x0 + dx - 1) / dx, (height - y0 + dy - 1) / dy);
          Bytes file = signature();
          chunk(file, "IHDR", header(width, height, depth, colour, interlace));
          if (colour == 3) chunk(file, "PLTE", picture(size_t{3} << depth, 0));
          if (has_transparency) chunk(file, "tRNS", Bytes(colour == 3 ? 2 : colour == 2 ? 6 : 2, 0));
          const Bytes data = stored(raw);
          const auto middle = data.begin() + static_cast<long>(data.size() / 2);
          chunk(file, "IDAT", Bytes(data.begin(), middle));
          chunk(file, "IDAT", Bytes(middle, data.end()));
          chunk(file, "IEND", {});
          files.push_back(file);
        }
  return files;
}

void reads_every_kind() {
  for (const Bytes &file : all_kinds()) {
    const Decoded d = decode(file);
    CHECK(d.status == ENGINE_OK);
    CHECK(d.info.width == 11 && d.info.height == 9);
    Bytes small(d.info.bytes - 1);
    CHECK(engine_png_decode({small.data(), small.size()}, {file.data(), file.size()}, kMaxPixels, nullptr) ==
          ENGINE_NO_SPACE);
  }
}

Bytes with_text() {
  const std::vector<engine_text> text = {{"prompt", "{\"1\": 2}", 6, 8}, {"caf\xE9", "\xFC", 4, 1}};
  return encode(picture(7 * 5 * 3, 1), 7, 5, 3, 4, text);
}

void refuses_truncated() {
  std::vector<Bytes> files = all_kinds();
  files.push_back(with_text());
  for (const Bytes &file : files)
    for (size_t n = 0; n < file.size(); n++)
      CHECK(decode(Bytes(file.begin(), file.begin() + static_cast<long>(n))).status == ENGINE_BAD_FILE);
}

void survives_corruption() {
  std::vector<Bytes> files = all_kinds();
  files.push_back(with_text());
  std::string text;
  for (const Bytes &file : files)
    for (size_t i = 0; i < file.size(); i++)
      for (const uint8_t change : {0x01, 0x20, 0x80, 0xFF}) {
        Bytes broken = file;
        broken[i] ^= change;
        CHECK(decode(broken).status != ENGINE_OK);
        repair(broken);
        const Decoded d = decode(broken);
        CHECK(d.status != ENGINE_OK || d.pixels.size() == d.info.bytes);
        read_text(broken, &text);
      }
}

struct Part {
  const char *type;
  Bytes data;
};

Bytes assemble(const std::vector<Part> &parts) {
  Bytes file = signature();
  for (const Part &part : parts) chunk(file, part.type, part.data);
  return file;
}

void refuses_wrong_structure() {
  const Bytes grey = header(2, 2, 8, 0), data = stored({0, 1, 2, 0, 3, 4}), end;
  const Part ihdr{"IHDR", grey}, idat{"IDAT", data}, iend{"IEND", end};
  const Part palette{"IHDR", header(2, 2, 8, 3)}, plte{"PLTE", Bytes(15)};
  CHECK(decode(assemble({ihdr, idat, iend})).status == ENGINE_OK);
  CHECK(decode(assemble({palette, plte, idat, iend})).status == ENGINE_OK);
  CHECK(decode(assemble({ihdr, {"teSt", {1, 2}}, idat, {"fdAT", {3}}, iend})).status == ENGINE_OK);
  struct Case {
    const char *what;
    std::vector<Part> parts;
    engine_status expected = ENGINE_BAD_FILE;
  };
  const Bytes longer = stored({0, 1, 2, 0, 3, 4, 5});
  Bytes tail = data;
  tail.push_back(0);
  const std::vector<Case> cases = {
      {"nothing", {}},
      {"no header", {idat, iend}},
      {"no data", {ihdr, iend}},
      {"no end", {ihdr, idat}},
      {"two headers", {ihdr, ihdr, idat, iend}},
      {"data apart", {ihdr, idat, {"teSt", {}}, idat, iend}},
      {"end with data", {ihdr, idat, {"IEND", {1}}}},
      {"unknown critical", {ihdr, {"TeSt", {}}, idat, iend}, ENGINE_UNSUPPORTED},
      {"name of no letters", {ihdr, {"te1t", {}}, idat, iend}},
      {"short header", {{"IHDR", Bytes(grey.begin(), grey.end() - 1)}, idat, iend}},
      {"width zero", {{"IHDR", header(0, 2, 8, 0)}, idat, iend}},
      {"height zero", {{"IHDR", header(2, 0, 8, 0)}, idat, iend}},
      {"width above 2^31", {{"IHDR", header(0x80000000u, 1, 8, 0)}, idat, iend}},
      {"depth 3", {{"IHDR", header(2, 2, 3, 0)}, idat, iend}},
      {"RGB of 4 bits", {{"IHDR", header(2, 2, 4, 2)}, idat, iend}},
      {"colour 1", {{"IHDR", header(2, 2, 8, 1)}, idat, iend}},
      {"interlace 2", {{"IHDR", header(2, 2, 8, 0, 2)}, idat, iend}},
      {"too many pixels", {{"IHDR", header(1025, 1024, 8, 0)}, idat, iend}, ENGINE_TOO_LARGE},
      {"most pixels", {{"IHDR", header(0x7FFFFFFF, 0x7FFFFFFF, 16, 6)}, idat, iend}, ENGINE_TOO_LARGE},
      {"more rows than data could fill", {{"IHDR", header(1024, 1024, 8, 6)}, idat, iend}},
      {"one row missing", {{"IHDR", header(2, 3, 8, 0)}, idat, iend}},
      {"one byte too many", {ihdr, {"IDAT", longer}, iend}},
      {"bytes after the stream", {ihdr, {"IDAT", tail}, iend}},
      {"filter 5", {ihdr, {"IDAT", stored({0, 1, 2, 5, 3, 4})}, iend}},
      {"no palette", {palette, idat, iend}},
      {"palette after data", {palette, idat, plte, iend}},
      {"two palettes", {palette, plte, plte, idat, iend}},
      {"palette of 4 bytes", {palette, {"PLTE", Bytes(4)}, idat, iend}},
      {"empty palette", {palette, {"PLTE", {}}, idat, iend}},
      {"palette of 257", {palette, {"PLTE", Bytes(257 * 3)}, idat, iend}},
      {"palette longer than the depth", {{"IHDR", header(2, 2, 1, 3)}, plte, idat, iend}},
      {"grey with a palette", {ihdr, plte, idat, iend}},
      {"index outside", {palette, {"PLTE", Bytes(12)}, idat, iend}},
      {"transparency too long", {palette, plte, {"tRNS", Bytes(6)}, idat, iend}},
      {"grey transparency of 1 byte", {ihdr, {"tRNS", {1}}, idat, iend}},
      {"two transparencies", {ihdr, {"tRNS", {0, 1}}, {"tRNS", {0, 1}}, idat, iend}},
  };
  for (const Case &c : cases) {
    const Decoded d = decode(assemble(c.parts));
    if (d.status != c.expected) std::fprintf(stderr, "%s: status %d\n", c.what, d.status);
    CHECK(d.status == c.expected);
    CHECK(d.reason != nullptr);
  }
  // a size that wraps 64 bits, with the limit lifted
  const Bytes vast = assemble({{"IHDR", header(0x7FFFFFFF, 0x7FFFFFFF, 16, 6)}, idat, iend});
  CHECK(decode(vast, UINT64_MAX).status == ENGINE_TOO_LARGE);
}

void reads_text() {
  std::string text;
  CHECK(read_text(with_text(), &text) == ENGINE_OK);
  CHECK(text == std::string("prompt\0{\"1\": 2}\0caf\xC3\xA9\0\xC3\xBC\0", 25));
  const Part ihdr{"IHDR", header(2, 2, 8, 0)}, idat{"IDAT", stored({0, 1, 2, 0, 3, 4})}, iend{"IEND", {}};
  const auto packed = [](const std::string &head, const std::string &value) {
    Bytes data(head.begin(), head.end());
    const Bytes stream = stored(Bytes(value.begin(), value.end()));
    data.insert(data.end(), stream.begin(), stream.end());
    return data;
  };
  const auto bytes = [](const std::string &s) { return Bytes(s.begin(), s.end()); };
  const Bytes file = assemble({ihdr,
                               {"zTXt", packed(std::string("z\0\0", 3), "\xE9")},
                               {"iTXt", bytes(std::string("i\0\0\0en\0key\0\xE7\x8C\xAB", 14))},
                               {"iTXt", packed(std::string("p\0\1\0\0\0", 6), "\xE7\x8C\xAB")},
                               {"tEXt", bytes("no separator")},
                               {"tEXt", bytes(std::string("\0empty key", 10))},
                               {"zTXt", bytes(std::string("k\0\0damaged", 10))},
                               {"zTXt", bytes(std::string("k\0\1method", 9))},
                               {"tEXt", bytes(std::string("e\0", 2))},
                               {"tEXt", bytes(std::string("n\0cut\0here", 10))},
                               idat,
                               iend});
  CHECK(read_text(file, &text) == ENGINE_OK);
  CHECK(text == std::string("z\0\xC3\xA9\0i\0\xE7\x8C\xAB\0p\0\xE7\x8C\xAB\0e\0\0n\0cut\0", 26));

  const Bytes limit(16 << 20, 'x');
  Bytes just = bytes(std::string("k\0", 2)), over = just;
  just.insert(just.end(), limit.begin(), limit.end());
  over = just;
  over.push_back('x');
  CHECK(read_text(assemble({ihdr, {"tEXt", just}, idat, iend}), &text) == ENGINE_OK);
  CHECK(read_text(assemble({ihdr, {"tEXt", over}, idat, iend}), &text) == ENGINE_TOO_LARGE);
  std::vector<Part> many = {ihdr};
  for (int k = 0; k < 5; k++) many.push_back({"tEXt", just});
  many.insert(many.end(), {idat, iend});
  CHECK(read_text(assemble(many), &text) == ENGINE_TOO_LARGE);
}

}  // namespace

int main() {
  round_trips();
  deep_round_trips();
  same_bytes_everywhere();
  options_are_checked();
  reads_every_kind();
  refuses_truncated();
  survives_corruption();
  refuses_wrong_structure();
  reads_text();
  return report();
}
