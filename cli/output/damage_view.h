// Damaged results and archives, for people and for programs.
#ifndef MUSTER_CLI_OUTPUT_DAMAGE_VIEW_H_
#define MUSTER_CLI_OUTPUT_DAMAGE_VIEW_H_

#include <string>
#include <vector>

#include "cli/output/json_view.h"
#include "muster/v1/verification.pb.h"

namespace muster::cli {

// Returns a table with a row for each damaged result or archive, with its run if `with_run`.
// `width`: of the terminal; 0 without one.
std::string DamageTable(const std::vector<v1::DamagedResult>& damaged, bool with_run, int width);

Json DamageJson(const std::vector<v1::DamagedResult>& damaged);

// Adds `damaged`, and `damage` to the entries of `plugins` that are damaged, to the JSON of `GET
// /status`.
void AddDamage(const std::vector<v1::DamagedResult>& damaged, Json& status);

// A verification of the store: its last report, and the damage of all reports.
struct Verification {
  v1::VerifyStoreResponse last;
  std::vector<v1::DamagedResult> damaged;
};

// Returns true if no damage was found.
bool IsSound(const Verification& verification);

// Returns "3 stored results and archives, 2 MiB".
std::string VerifiedText(const v1::VerifyStoreResponse& report);

// Returns the sentence that ends a verification, without counts if nothing was verified.
std::string VerificationText(const Verification& verification);

// Returns a sentence with the number of results that are requested from their nodes again; empty if
// there is none.
std::string RedeliveryText(const std::vector<v1::DamagedResult>& damaged);

// `complete` is false if the verification did not end.
Json VerificationJson(const Verification& verification);

}  // namespace muster::cli

#endif  // MUSTER_CLI_OUTPUT_DAMAGE_VIEW_H_
