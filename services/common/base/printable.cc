#include "services/common/base/printable.h"

#include <algorithm>
#include <cstddef>

#include "services/common/base/utf8.h"

namespace muster {

std::string Printable(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const size_t length = PrintableLength(text);
    if (length > 0) {
      out.append(text.substr(0, length));
    } else {
      out.push_back(text.front() == '\n' || text.front() == '\t' ? ' ' : '?');
    }
    text.remove_prefix(std::max<size_t>(length, 1));
  }
  return out;
}

}  // namespace muster
