#include "services/relay/files/local_share_index.h"

#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "services/common/base/status_macros.h"
#include "services/common/errors/runs.h"
#include "services/common/errors/shares.h"
#include "services/relay/files/share_errors.h"

namespace muster {
namespace {

constexpr int kMaxPage = 1'000;
constexpr size_t kUsualPage = 100;

}  // namespace

// The token is the last key of the previous page.
absl::Status LocalShareIndex::CheckPage(const v1::ListSharesRequest& request, ShareName* after) {
  if (request.page_size() < 0 || request.page_size() > kMaxPage) {
    return errors::InvalidPageSize(kMaxPage);
  }
  if (request.page_token().empty()) return absl::OkStatus();
  const std::vector<std::string> parts = absl::StrSplit(request.page_token(), '/');
  if (parts.size() != 3) return errors::InvalidPageToken();
  *after = {parts[0], parts[1], parts[2]};
  return absl::OkStatus();
}

absl::StatusOr<v1::ListSharesResponse> LocalShareIndex::List(const v1::ListSharesRequest& request,
                                                             const std::string* node) const {
  ShareName after;
  RETURN_IF_ERROR(CheckPage(request, &after));
  const size_t limit =
      request.page_size() > 0 ? static_cast<size_t>(request.page_size()) : kUsualPage;
  auto found = parts_.store.Select(after, limit + 1, [node](const ShareRecord& record) {
    const v1::ShareKey& key = record.key();
    const bool held = record.stage == ShareStage::kHeld;
    if (node == nullptr) return held;
    if (key.source() == *node) return record.stage != ShareStage::kEnded;
    return key.target() == *node && held;
  });
  const bool more = found.size() > limit;
  if (more) found.resize(limit);
  v1::ListSharesResponse response;
  for (ShareRecord& record : found) *response.add_shares() = std::move(record.share);
  if (more) {
    const v1::ShareKey& last = response.shares(response.shares_size() - 1).file().key();
    response.set_next_page_token(absl::StrCat(last.source(), "/", last.target(), "/", last.id()));
  }
  if (node == nullptr) *response.mutable_usage() = parts_.store.Usage();
  return response;
}

std::optional<LocalShareIndex::Known> LocalShareIndex::Get(const v1::ShareKey& key) const {
  auto found = parts_.store.Find(key);
  if (!found) return std::nullopt;
  Known known;
  known.passed_up = found->stage == ShareStage::kPassedUp;
  auto file = parts_.store.ReadFile(*found);
  known.share = std::move(found->share);
  if (file.ok()) *known.share.mutable_file() = *std::move(file);
  return known;
}

absl::Status LocalShareIndex::Remove(const v1::ShareKey& key, bool* at_parent) const {
  parts_.store.DropUpload(key);
  const auto found = parts_.store.Find(key);
  if (!found || found->stage == ShareStage::kEnded) return errors::ShareNotFound(key);
  *at_parent = found->stage == ShareStage::kPassedUp;
  if (*at_parent) return absl::OkStatus();
  ShareRecord is = *found;
  is.share.set_state(v1::SHARE_STATE_REMOVED);
  is.share.mutable_change_time()->set_seconds(absl::ToUnixSeconds(parts_.clock.Now()));
  is.removing = found->stage == ShareStage::kPassedDown;
  if (!is.removing) is.stage = ShareStage::kEnded;
  is.unreported = is.from_parent;
  const absl::Status updated = parts_.store.Update(*found, std::move(is));
  routing_.Wake();
  return updated;
}

}  // namespace muster
