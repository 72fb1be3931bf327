#include "services/common/base/crc32c.h"

#include <isa-l/crc.h>

#include <algorithm>
#include <array>
#include <cstddef>

namespace muster {
namespace {

// CRCs are polynomials over GF(2) modulo this one; the highest bit is the coefficient of x^0.
constexpr uint32_t kPolynomial = 0x82f63b78;

constexpr uint32_t Multiply(uint32_t a, uint32_t b) {
  uint32_t product = 0;
  for (uint32_t bit = uint32_t{1} << 31; bit != 0; bit >>= 1) {
    if ((a & bit) != 0) product ^= b;
    b = (b & 1) != 0 ? (b >> 1) ^ kPolynomial : b >> 1;
  }
  return product;
}

// The element k is x^(8 * 2^k): the shift by 2^k bytes.
constexpr std::array<uint32_t, 64> MakeShifts() {
  std::array<uint32_t, 64> shifts = {uint32_t{1} << 23};
  for (size_t k = 1; k < shifts.size(); ++k) {
    shifts[k] = Multiply(shifts[k - 1], shifts[k - 1]);
  }
  return shifts;
}

constexpr std::array<uint32_t, 64> kShifts = MakeShifts();

}  // namespace

uint32_t ExtendCrc32c(uint32_t crc, std::string_view data) {
  constexpr size_t kStep = size_t{1} << 30;  // the library counts in int
  crc = ~crc;                                // and leaves both inversions to us
  while (!data.empty()) {
    const size_t n = std::min(data.size(), kStep);
    auto* const bytes = reinterpret_cast<unsigned char*>(const_cast<char*>(data.data()));
    crc = crc32_iscsi(bytes, static_cast<int>(n), crc);  // only reads
    data.remove_prefix(n);
  }
  return ~crc;
}

uint32_t CombineCrc32c(uint32_t crc, uint32_t next_crc, uint64_t next_size) {
  for (size_t k = 0; next_size != 0; ++k, next_size >>= 1) {
    if ((next_size & 1) != 0) crc = Multiply(kShifts[k], crc);
  }
  return crc ^ next_crc;
}

}  // namespace muster
