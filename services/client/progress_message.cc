#include "services/client/progress_message.h"

#include <algorithm>
#include <string>
#include <vector>

#include "services/client/clean_text.h"

namespace muster::client {
namespace {

// The limits of the status service.
constexpr size_t kMaxMessage = 4096;
constexpr size_t kMaxName = 1024;
constexpr size_t kMaxNames = 100;

// Adds the newest names.
void AddNames(const std::vector<std::string>& names,
              google::protobuf::RepeatedPtrField<std::string>* to) {
  for (size_t i = names.size() - std::min(names.size(), kMaxNames); i < names.size(); ++i) {
    to->Add(CleanText(names[i], kMaxName));
  }
}

}  // namespace

void ToMessage(const Progress& progress, v1::ReportProgressRequest* request) {
  request->set_message(CleanText(progress.message, kMaxMessage));
  request->set_total(progress.total);
  request->set_completed(progress.completed);
  AddNames(progress.failures, request->mutable_failures());
  AddNames(progress.errors, request->mutable_errors());
  request->set_append_totals(progress.append_totals);
  request->set_append_completed(progress.append_completed);
  // Adds all names, because they are counted.
  for (const auto& name : progress.append_failing) {
    request->add_append_failing(CleanText(name, kMaxName));
  }
}

}  // namespace muster::client
