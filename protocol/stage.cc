#include "protocol/stage.h"

#include <cstring>

namespace sluice::protocol {
namespace {

// SipHash-2-4 with a 128-bit result (Aumasson and Bernstein, "SipHash: a fast short-input PRF",
// 2012, and its reference for the wider result).
class SipHash {
 public:
  explicit SipHash(const uint64_t secret[2])
      : v0_(0x736f6d6570736575ULL ^ secret[0]),
        v1_(0x646f72616e646f6dULL ^ secret[1] ^ 0xee),
        v2_(0x6c7967656e657261ULL ^ secret[0]),
        v3_(0x7465646279746573ULL ^ secret[1]) {}

  void word(uint64_t m) {
    v3_ ^= m;
    rounds(2);
    v0_ ^= m;
  }

  StageKey finish() {
    StageKey key;
    v2_ ^= 0xee;
    rounds(4);
    key.low = v0_ ^ v1_ ^ v2_ ^ v3_;
    v1_ ^= 0xdd;
    rounds(4);
    key.high = v0_ ^ v1_ ^ v2_ ^ v3_;
    return key;
  }

 private:
  static uint64_t rotate(uint64_t x, unsigned by) { return x << by | x >> (64 - by); }

  void rounds(unsigned count) {
    for (unsigned i = 0; i < count; ++i) {
      v0_ += v1_;
      v1_ = rotate(v1_, 13) ^ v0_;
      v0_ = rotate(v0_, 32);
      v2_ += v3_;
      v3_ = rotate(v3_, 16) ^ v2_;
      v0_ += v3_;
      v3_ = rotate(v3_, 21) ^ v0_;
      v2_ += v1_;
      v1_ = rotate(v1_, 17) ^ v2_;
      v2_ = rotate(v2_, 32);
    }
  }

  uint64_t v0_, v1_, v2_, v3_;
};

}  // namespace

StageKey stage_key(const uint64_t secret[2], const char* path, size_t length) {
  SipHash hash(secret);
  uint64_t word = 0;
  const size_t whole = length / 8 * 8;
  for (size_t at = 0; at < whole; at += 8) {
    memcpy(&word, path + at, 8);
    hash.word(word);
  }
  word = 0;
  memcpy(&word, path + whole, length - whole);
  hash.word(word | static_cast<uint64_t>(length) << 56);
  return hash.finish();
}

void stage_name(char* out, const char* folder, uint64_t name) {
  const size_t length = strnlen(folder, kStageFolder - 1);
  memcpy(out, folder, length);
  out[length] = '/';
  for (unsigned i = 0; i < 16; ++i)
    out[length + 1 + i] = "0123456789abcdef"[name >> (60 - 4 * i) & 15];
  out[length + 17] = '\0';
}

size_t stage_path(char* out, const char* folder, size_t folder_length, const char* path,
                  size_t length) {
  size_t used = 0;
  const auto add = [&](const char* text, size_t size) {
    for (size_t at = 0; at < size;) {
      while (at < size && text[at] == '/') ++at;
      size_t end = at;
      while (end < size && text[end] != '/') ++end;
      const size_t part = end - at;
      if (part != 0 && !(part == 1 && text[at] == '.')) {
        if (used + 1 + part >= kStagePath) return false;
        out[used++] = '/';
        memcpy(out + used, text + at, part);
        used += part;
      }
      at = end;
    }
    return true;
  };
  if (length == 0) return 0;
  if (path[0] != '/' && (folder_length == 0 || folder[0] != '/' || !add(folder, folder_length))) {
    return 0;
  }
  if (!add(path, length)) return 0;
  // "name/" and "name/." ask for a folder, which `name` may not be.
  if (path[length - 1] == '/' ||
      (path[length - 1] == '.' && (length == 1 || path[length - 2] == '/'))) {
    return 0;
  }
  out[used] = '\0';
  return used;
}

}  // namespace sluice::protocol
