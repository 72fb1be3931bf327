// Reads any text as a type and as a template, merges it with itself, and resolves its parameters. A
// schema is never wider than itself.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "services/common/templates/documents.h"
#include "services/common/templates/schema_comparison.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  (void)muster::ReadTemplate(text);
  const auto type = muster::ReadType(text);
  if (!type.ok()) return 0;
  for (const muster::Parameter& parameter : type->parameters) {
    if (!muster::WhyNotNarrower(parameter.schema, parameter.schema).empty()) std::abort();
    (void)parameter.schema.Validate("aaaaaaaaaaaaaaaaaaaaaaaaaaaaab");
    (void)parameter.schema.Validate({{"a", {1, 2.5, nullptr, {{"b", "c"}}}}});
  }
  std::vector<std::string> mistakes;
  const auto merged = muster::MergeParameters(type->parameters, type->parameters, &mistakes);
  (void)muster::ResolveParameters(merged, {{"size", 1}, {"none", "x"}}, &mistakes);
  return 0;
}
