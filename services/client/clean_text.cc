#include "services/client/clean_text.h"

#include "services/common/base/utf8.h"

namespace muster::client {
namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";

}  // namespace

std::string CleanText(std::string_view text, size_t max_bytes) {
  std::string clean;
  while (!text.empty()) {
    const bool ascii = static_cast<unsigned char>(text.front()) < 0x80;
    const size_t length = ascii ? 1 : PrintableLength(text);
    const std::string_view piece = length > 0 ? text.substr(0, length) : kReplacement;
    if (clean.size() + piece.size() > max_bytes) break;
    clean += piece;
    text.remove_prefix(length > 0 ? length : 1);
  }
  return clean;
}

}  // namespace muster::client
