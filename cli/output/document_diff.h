// The differences of two documents.
#ifndef MUSTER_CLI_OUTPUT_DOCUMENT_DIFF_H_
#define MUSTER_CLI_OUTPUT_DOCUMENT_DIFF_H_

#include <google/protobuf/repeated_field.h>

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "cli/output/json_view.h"
#include "muster/v1/deployments.pb.h"

namespace muster::cli {

// A value that one of the documents lacks, or that differs.
struct DocumentChange {
  std::string path;    // a JSON pointer (RFC 6901); of an element that was appended, it ends in "-"
  std::string before;  // JSON; empty: the first document lacks it
  std::string after;   // JSON; empty: the second document lacks it
};

// Returns what leads from the first document to the second, as JSON Patch (RFC 6902) does. Fails
// with INVALID_ARGUMENT (INVALID_DOCUMENT) for a document that is not JSON.
absl::StatusOr<std::vector<DocumentChange>> CompareDocuments(std::string_view before,
                                                             std::string_view after);

// Returns which files one of two versions of a template lacks, or has with other bytes or another
// mode. The path is "/files/PATH", escaped as in a JSON pointer; the value has size, sha256 and
// executable.
using TemplateFileList = google::protobuf::RepeatedPtrField<v1::DeploymentFile>;
std::vector<DocumentChange> CompareFiles(const TemplateFileList& before,
                                         const TemplateFileList& after);

// Returns a line for each lost value ("- ") and each new one ("+ ").
std::string DiffText(const std::vector<DocumentChange>& changes);

Json ToJson(const std::vector<DocumentChange>& changes);

}  // namespace muster::cli

#endif  // MUSTER_CLI_OUTPUT_DOCUMENT_DIFF_H_
