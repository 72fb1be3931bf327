#include "services/common/templates/outputs.h"

#include <map>

#include "absl/strings/str_cat.h"
#include "services/common/templates/exact_json.h"

namespace muster {
namespace {

void AddFaults(const v1::JobRecord::Outputs::Output& output, const Output* declared,
               std::vector<std::string>* faults) {
  const std::string& name = output.name();
  if (declared == nullptr) {
    faults->push_back(absl::StrCat(name, ": no document has this output"));
    return;
  }
  if (declared->sensitive) {
    if (!output.value().empty()) faults->push_back(absl::StrCat(name, ": is sensitive"));
    return;
  }
  const auto [value, fault] = ParseExactJson(output.value());
  if (fault != JsonFault::kNone) {
    faults->push_back(absl::StrCat(name, ": ", FaultText(fault)));
    return;
  }
  for (std::string& found : declared->schema.Validate(value, name)) {
    faults->push_back(std::move(found));
  }
}

}  // namespace

std::vector<std::string> FaultsOfOutputs(const v1::JobRecord::Outputs& outputs,
                                         const ResolvedDeployment& deployment) {
  std::vector<std::string> faults;
  std::map<std::string, const Output*> missing = deployment.outputs();
  for (const v1::JobRecord::Outputs::Output& output : outputs.outputs()) {
    const auto found = missing.find(output.name());
    AddFaults(output, found == missing.end() ? nullptr : found->second, &faults);
    if (found != missing.end()) missing.erase(found);
  }
  for (const auto& [name, declared] : missing) {
    if (declared->required && deployment.requires_outputs())
      faults.push_back(absl::StrCat(name, ": is missing"));
  }
  return faults;
}

}  // namespace muster
