// Reads the header of a PNG and walks its chunks, without allocating.
#include <cstring>

#include "png/png.h"

namespace latentkit::png {
namespace {

bool depth_fits(uint8_t colour, int depth) {
  switch (colour) {
    case kGrey: return depth == 1 || depth == 2 || depth == 4 || depth == 8 || depth == 16;
    case kPalette: return depth == 1 || depth == 2 || depth == 4 || depth == 8;
    case kRgb:
    case kGreyAlpha:
    case kRgba: return depth == 8 || depth == 16;
    default: return false;
  }
}

engine_status read_header(const Chunk &chunk, uint64_t max_pixels, Scan *scan, const char **reason) {
  if (chunk.type != type_of("IHDR") || chunk.len != 13) return refuse(reason, "the header is missing");
  scan->width = read32(chunk.data);
  scan->height = read32(chunk.data + 4);
  scan->depth = chunk.data[8];
  scan->colour = chunk.data[9];
  scan->interlaced = chunk.data[12] == 1;
  if (scan->width == 0 || scan->height == 0 || scan->width > kMaxChunk || scan->height > kMaxChunk)
    return refuse(reason, "the width or height is zero or above 2147483647");
  if (!depth_fits(scan->colour, scan->depth)) return refuse(reason, "the colour type or bit depth is not valid");
  if (chunk.data[10] != 0 || chunk.data[11] != 0 || chunk.data[12] > 1)
    return refuse(reason, "the compression, filter or interlace method is not valid");
  if (uint64_t{scan->width} * scan->height > max_pixels)
    return refuse(reason, "the picture has more pixels than allowed", ENGINE_TOO_LARGE);
  return ENGINE_OK;
}

engine_status read_palette(const Chunk &chunk, Scan *scan, const char **reason) {
  if (scan->data_chunks > 0 || scan->palette != nullptr) return refuse(reason, "the palette is in the wrong place");
  if (scan->colour == kGrey || scan->colour == kGreyAlpha) return refuse(reason, "a greyscale picture has a palette");
  const size_t most = scan->colour == kPalette ? size_t{1} << scan->depth : 256;
  if (chunk.len == 0 || chunk.len % 3 != 0 || chunk.len / 3 > most)
    return refuse(reason, "the palette has the wrong length");
  scan->palette = chunk.data;
  scan->palette_size = chunk.len / 3;
  return ENGINE_OK;
}

engine_status read_transparency(const Chunk &chunk, Scan *scan, const char **reason) {
  // after the data or beside real alpha it means nothing, and other readers ignore it
  if (scan->data_chunks > 0 || scan->colour == kGreyAlpha || scan->colour == kRgba) return ENGINE_OK;
  if (scan->transparency != nullptr) return refuse(reason, "there are two transparency chunks");
  const bool fits = scan->colour == kPalette ? chunk.len >= 1 && chunk.len <= scan->palette_size
                                             : chunk.len == (scan->colour == kGrey ? 2u : 6u);
  if (!fits) return refuse(reason, "the transparency has the wrong length");
  scan->transparency = chunk.data;
  scan->transparency_len = chunk.len;
  return ENGINE_OK;
}

/* A picture whose animation chunk is late, damaged or there twice counts as a still one, as in other readers. */
void read_animation(const Chunk &chunk, int *count, Scan *scan) {
  const uint32_t frames = chunk.len == 8 ? read32(chunk.data) : 0;
  const bool counts = ++*count == 1 && scan->data_chunks == 0 && frames <= kMaxChunk;
  scan->announced_frames = counts ? frames : 0;
}

/* Bytes of all rows with their filter bytes; false if they overflow. */
bool raw_size(const Scan &scan, size_t *total) {
  Pass passes[7];
  const int count = scan.passes(passes);
  *total = 0;
  for (int k = 0; k < count; k++) {
    size_t bytes;
    if (__builtin_mul_overflow(passes[k].row_bytes + 1, passes[k].height, &bytes) ||
        __builtin_add_overflow(*total, bytes, total))
      return false;
  }
  return true;
}

}  // namespace

Chunks::Chunks(engine_cu8 file) : file_(file) {
  if (file.len < sizeof kSignature || std::memcmp(file.data, kSignature, sizeof kSignature) != 0)
    reason_ = "it does not start with the signature of a PNG";
  else at_ = sizeof kSignature;
}

bool Chunks::fail(const char *reason) {
  reason_ = reason;
  return false;
}

bool Chunks::next(Chunk *chunk) {
  if (reason_ != nullptr || ended_) return false;
  const size_t left = file_.len - at_;
  if (left < 12) return fail("it ends before its end chunk");
  const uint8_t *p = file_.data + at_;
  const size_t len = read32(p);
  if (len > kMaxChunk || len > left - 12) return fail("a chunk extends beyond the end of the file");
  for (int k = 4; k < 8; k++)
    if (!((p[k] >= 'A' && p[k] <= 'Z') || (p[k] >= 'a' && p[k] <= 'z'))) return fail("a chunk has an invalid name");
  if (libdeflate_crc32(0, p + 4, len + 4) != read32(p + 8 + len)) return fail("the checksum of a chunk is wrong");
  *chunk = {read32(p + 4), p + 8, len};
  at_ += len + 12;
  ended_ = chunk->type == type_of("IEND");
  if (ended_ && len != 0) return fail("the end chunk is not empty");
  return true;
}

int Scan::samples() const { return colour == kRgb ? 3 : colour == kRgba ? 4 : colour == kGreyAlpha ? 2 : 1; }

int Scan::channels() const {
  const int plain = colour == kPalette ? 3 : samples();
  return transparency == nullptr ? plain : plain + 1;
}

int Scan::passes(Pass out[7]) const {
  static constexpr Pass kAdam7[7] = {{0, 0, 8, 8, 0, 0, 0}, {4, 0, 8, 8, 0, 0, 0}, {0, 4, 4, 8, 0, 0, 0},
                                     {2, 0, 4, 4, 0, 0, 0}, {0, 2, 2, 4, 0, 0, 0}, {1, 0, 2, 2, 0, 0, 0},
                                     {0, 1, 1, 2, 0, 0, 0}};
  static constexpr Pass kPlain = {0, 0, 1, 1, 0, 0, 0};
  int count = 0;
  for (int k = 0; k < (interlaced ? 7 : 1); k++) {
    Pass pass = interlaced ? kAdam7[k] : kPlain;
    if (width <= pass.x0 || height <= pass.y0) continue;
    pass.width = (size_t{width} - pass.x0 + pass.dx - 1) / pass.dx;
    pass.height = (size_t{height} - pass.y0 + pass.dy - 1) / pass.dy;
    pass.row_bytes = (pass.width * pixel_bits() + 7) / 8;
    out[count++] = pass;
  }
  return count;
}

engine_status scan(engine_cu8 file, uint64_t max_pixels, Scan *scan, const char **reason) {
  *scan = Scan{};
  Chunks chunks(file);
  Chunk chunk{};
  if (!chunks.next(&chunk)) return refuse(reason, chunks.reason() ? chunks.reason() : "it has no header");
  engine_status status = read_header(chunk, max_pixels, scan, reason);
  bool data_ended = false;
  size_t texts = 0;
  int animations = 0;
  while (status == ENGINE_OK && chunks.next(&chunk)) {
    const bool is_data = chunk.type == type_of("IDAT");
    data_ended = data_ended || (!is_data && scan->data_chunks > 0);
    if (is_data) {
      if (data_ended) return refuse(reason, "the data chunks are not consecutive");
      if (scan->data_chunks++ == 0) scan->first_data = static_cast<size_t>(chunk.data - 8 - file.data);
      scan->data_len += chunk.len;
    } else if (chunk.type == type_of("PLTE")) {
      status = read_palette(chunk, scan, reason);
    } else if (chunk.type == type_of("tRNS")) {
      status = read_transparency(chunk, scan, reason);
    } else if (chunk.type == type_of("IHDR")) {
      return refuse(reason, "there are two headers");
    } else if ((chunk.type & 0x20000000) == 0 && chunk.type != type_of("IEND")) {
      return refuse(reason, "it has an unknown critical chunk", ENGINE_UNSUPPORTED);
    } else if (chunk.type == type_of("acTL")) {
      read_animation(chunk, &animations, scan);
    } else if (chunk.type == type_of("eXIf")) {
      scan->exif = chunk;
    } else {
      const size_t bound = text_bound(chunk);
      texts = bound > kMaxTexts - texts ? kMaxTexts : texts + bound;
    }
  }
  if (status != ENGINE_OK) return status;
  if (chunks.reason() != nullptr) return refuse(reason, chunks.reason());
  if (scan->data_chunks == 0) return refuse(reason, "it has no data");
  if (scan->colour == kPalette && scan->palette == nullptr) return refuse(reason, "the palette is missing");
  scan->text_bytes = texts;
  return measure(scan, reason);
}

engine_status measure(Scan *scan, const char **reason) {
  size_t result = 0;
  if (!raw_size(*scan, &scan->raw_len) ||
      __builtin_mul_overflow(size_t{scan->width} * scan->height, scan->result_pixel_bytes(), &result))
    return refuse(reason, "the picture does not fit in memory", ENGINE_TOO_LARGE);
  // a declared size that this data cannot fill is refused before anything is allocated for it
  if (scan->raw_len / kMaxDeflateRatio > scan->data_len) return refuse(reason, "the data ends early");
  return ENGINE_OK;
}

}  // namespace latentkit::png

extern "C" engine_status engine_png_inspect(engine_cu8 file, uint64_t max_pixels, engine_png_info *info,
                                            const char **reason) {
  latentkit::png::Scan scan;
  const char *why = nullptr;
  const engine_status status = latentkit::png::scan(file, max_pixels, &scan, &why);
  if (reason != nullptr) *reason = why;
  if (status != ENGINE_OK) return status;
  const size_t bytes = size_t{scan.width} * scan.height * scan.result_pixel_bytes();
  *info = {scan.width, scan.height, scan.channels(), scan.result_depth(), bytes, scan.text_bytes, 1, 0};
  return ENGINE_OK;
}
