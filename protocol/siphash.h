// A keyed hash of bytes. Freestanding; any thread; async-signal-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace sluice::protocol {

struct Hash128 {
  uint64_t low = 0, high = 0;
};

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

  Hash128 finish() {
    Hash128 key;
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

// Without knowing `secret`, no one can construct a collision.
inline Hash128 siphash(const uint64_t secret[2], const void* data, size_t length) {
  const auto* bytes = static_cast<const char*>(data);
  SipHash hash(secret);
  uint64_t word = 0;
  const size_t whole = length / 8 * 8;
  for (size_t at = 0; at < whole; at += 8) {
    memcpy(&word, bytes + at, 8);
    hash.word(word);
  }
  word = 0;
  if (length != whole) memcpy(&word, bytes + whole, length - whole);
  hash.word(word | static_cast<uint64_t>(length) << 56);
  return hash.finish();
}

}  // namespace sluice::protocol
