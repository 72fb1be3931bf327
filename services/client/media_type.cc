#include "services/client/media_type.h"

#include <algorithm>
#include <iterator>

namespace muster::client {
namespace {

struct Known {
  std::string_view ending;
  std::string_view type;
};

constexpr Known kKnown[] = {
    {".gz", "application/gzip"},
    {".htm", "text/html; charset=utf-8"},
    {".html", "text/html; charset=utf-8"},
    {".json", "application/json"},
    {".log", "text/x-log; charset=utf-8"},
    {".tar", "application/x-tar"},
    {".tgz", "application/x-compressed-tar"},
    {".txt", "text/plain; charset=utf-8"},
    {".xml", "text/xml; charset=utf-8"},
    {".yaml", "application/x-yaml"},
    {".yml", "application/x-yaml"},
};

}  // namespace

std::string_view MediaTypeOf(std::string_view file_name) {
  const size_t dot = file_name.rfind('.');
  if (dot == std::string_view::npos) return {};
  const auto* known = std::ranges::find(kKnown, file_name.substr(dot), &Known::ending);
  return known == std::end(kKnown) ? std::string_view() : known->type;
}

}  // namespace muster::client
