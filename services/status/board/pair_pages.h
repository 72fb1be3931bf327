// Pages of the pairs of a run, as a query asks for them.
#ifndef MUSTER_SERVICES_STATUS_BOARD_PAIR_PAGES_H_
#define MUSTER_SERVICES_STATUS_BOARD_PAIR_PAGES_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "muster/v1/status.pb.h"
#include "services/status/board/pair_table.h"
#include "services/status/board/pair_writer.h"

namespace muster {

// Which part of a run is asked for.
struct StatusQuery {
  std::string run;  // empty: the newest
  std::string plugin;
  v1::Outcome outcome = v1::OUTCOME_UNSPECIFIED;  // unspecified: any
  std::vector<v1::Reason> reasons;                // empty: any
  int page_size = 0;                              // pairs; 0: none
  std::string page_token;
  // The caller may see only this plugin and this node.
  std::string only_plugin;
  std::string only_node;
};

// A position between the pairs of a run, ordered by plugin and node: after this pair.
struct PagePosition {
  std::string plugin;
  std::string node;
};

// INVALID_PAGE_TOKEN. The empty token is the beginning.
absl::StatusOr<PagePosition> ParsePageToken(const std::string& token);
std::string ToPageToken(const PagePosition& position);

// Why AddPagePart returned.
enum class PagePart { kMore, kPageFull, kEnd };

// Appends the pairs of a page after `position`, and advances it. Reads few enough pairs that the
// caller may hold a lock. Returns kMore if the page continues at `position`, kPageFull
// if the next page does, kEnd after the last pair.
PagePart AddPagePart(const PairTable& pairs, const StatusQuery& query, const PairView& view,
                     PagePosition* position, PairWriter* out);

}  // namespace muster

#endif  // MUSTER_SERVICES_STATUS_BOARD_PAIR_PAGES_H_
