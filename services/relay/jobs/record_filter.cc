#include "services/relay/jobs/record_filter.h"

#include <algorithm>

#include "services/common/base/log.h"

namespace muster {

void RecordFilter::Apply(const std::string& relay, v1::JobRecords* records) {
  auto& all = *records->mutable_records();
  const auto foreign = std::stable_partition(
      all.begin(), all.end(),
      [&](const v1::JobRecord& record) { return topology_.IsDownstreamOf(record.node(), relay); });
  if (foreign == all.end()) return;
  const std::string node = foreign->node();
  removed_ += all.end() - foreign;
  all.erase(foreign, all.end());
  LogLimited(LogLevel::kWarning,
             "records of a node that is not a descendant of the relay are dropped", relay,
             {{"relay", relay}, {"node", node}});
}

}  // namespace muster
