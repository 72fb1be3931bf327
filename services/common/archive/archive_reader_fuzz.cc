// Reads any bytes as an archive of a run. The report counts what it names, and what is extracted is
// an archive again.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "absl/status/status.h"
#include "services/common/archive/archive_reader.h"
#include "services/common/archive/test_support.h"
#include "services/common/base/string_source.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string archive(reinterpret_cast<const char*>(data), size);
  muster::StringSource verified(archive);
  if (const auto report = muster::VerifyArchive(verified); report.ok()) {
    if (report->entries < 0 || report->bytes < 0 || report->messages.size() > 100) std::abort();
    if (report->mistakes < static_cast<int64_t>(report->messages.size())) std::abort();
  }
  muster::StringSource trees(archive);
  (void)muster::ReadResultTrees(
      trees, "", [](const std::string&, muster::ResultItem) { return absl::OkStatus(); });
  muster::StringSink sink;
  muster::StringSource source(archive);
  if (muster::ExtractPlugin(source, "disk", sink).ok()) {
    muster::StringSource extracted(sink.text);
    muster::StringSink again;
    if (!muster::ExtractPlugin(extracted, "disk", again).ok()) std::abort();
    if (again.text != sink.text) std::abort();
  }
  return 0;
}
