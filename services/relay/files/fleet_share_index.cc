#include "services/relay/files/fleet_share_index.h"

#include <algorithm>
#include <memory>

#include "services/common/errors/jobs.h"
#include "services/common/errors/relay.h"
#include "services/common/errors/runs.h"
#include "services/common/errors/shares.h"
#include "services/relay/files/share_errors.h"

namespace muster {

// Returns the relays that may have the file, the most likely one last: this relay, the parent of
// its target, the parent of its source.
std::vector<std::string> FleetShareIndex::Candidates(const v1::ShareKey& key,
                                                     const std::string& relay) const {
  if (!relay.empty()) return {relay};
  std::vector<std::string> relays;
  for (const std::string& node : {key.source(), key.target()}) {
    const auto entry = parts_.tree.Find(node);
    if (!entry || IsHere(entry->relay)) continue;
    std::erase(relays, entry->relay);
    relays.push_back(entry->relay);
  }
  relays.push_back(parts_.tree.name());
  return relays;
}

// An error of a relay that did not answer is returned rather than the NOT_FOUND of another one.
void FleetShareIndex::Locate(const v1::ShareKey& key, std::vector<std::string> relays,
                             HandleFound done, const absl::Status& so_far) const {
  const std::string relay = relays.back();
  relays.pop_back();
  const auto next = [this, key, relays, done, so_far](const absl::Status& why) {
    const absl::Status& result = so_far.ok() || absl::IsNotFound(so_far) ? why : so_far;
    if (relays.empty()) return done(result);
    Locate(key, relays, done, result);
  };
  if (IsHere(relay)) {
    auto known = local_index_.Get(key);
    if (!known) return next(errors::ShareNotFound(key));
    return done(Found{relay, std::move(known->share)});
  }
  v1::ShareQuery query;
  query.set_relay(relay);
  *query.mutable_get() = key;
  queries_.Ask(std::move(query),
               [key, relay, next, done](const absl::StatusOr<v1::AnswerShareQueryRequest>& answer) {
                 if (!answer.ok()) return next(answer.status());
                 if (!answer->has_share()) return next(errors::ShareNotFound(key));
                 done(Found{relay, answer->share()});
               });
}

void FleetShareIndex::List(const v1::ListSharesRequest& request,
                           std::function<void(absl::StatusOr<v1::ListSharesResponse>)> done) const {
  if (request.relay().empty() || IsHere(request.relay()))
    return done(local_index_.List(request, nullptr));
  if (!parts_.is_root) return done(errors::NotTheRoot(parts_.tree.name()));
  ShareName after;
  if (absl::Status s = LocalShareIndex::CheckPage(request, &after); !s.ok()) return done(s);
  v1::ShareQuery query;
  query.set_relay(request.relay());
  *query.mutable_list() = request;
  queries_.Ask(std::move(query), [done = std::move(done), relay = request.relay()](
                                     absl::StatusOr<v1::AnswerShareQueryRequest> answer) {
    if (!answer.ok()) return done(answer.status());
    if (!answer->has_list()) return done(errors::RelayFailed(relay, answer->fault()));
    done(std::move(*answer->mutable_list()));
  });
}

void FleetShareIndex::Get(const v1::GetShareRequest& request,
                          std::function<void(absl::StatusOr<v1::Share>)> done) const {
  const bool elsewhere = !request.relay().empty() && !IsHere(request.relay());
  if (elsewhere && !parts_.is_root) return done(errors::NotTheRoot(parts_.tree.name()));
  std::vector<std::string> relays = {parts_.tree.name()};
  if (parts_.is_root) relays = Candidates(request.key(), request.relay());
  Locate(request.key(), std::move(relays), [done = std::move(done)](absl::StatusOr<Found> found) {
    if (!found.ok()) return done(found.status());
    done(std::move(found->share));
  });
}

// The removal is recorded first: without a record in the audit log nothing is removed.
void FleetShareIndex::Remove(const v1::RemoveShareRequest& request, const std::string& actor,
                             std::function<void(const absl::Status&)> done) const {
  if (!parts_.is_root) return done(errors::NotTheRoot(parts_.tree.name()));
  const v1::ShareKey& key = request.key();
  Locate(key, Candidates(key, request.relay()),
         [this, key, actor, done = std::move(done)](const absl::StatusOr<Found>& found) {
           if (!found.ok()) return done(found.status());
           aggregator_.RecordRemoval(
               key, actor, found->relay,
               [this, key, done, relay = found->relay](const absl::Status& recorded) {
                 if (!recorded.ok()) return done(recorded);
                 RemoveAt(key, relay, done);
               });
         });
}

void FleetShareIndex::RemoveAt(const v1::ShareKey& key, const std::string& relay,
                               std::function<void(const absl::Status&)> done) const {
  if (IsHere(relay)) {
    const bool queued = disk_.Post([this, key, done] {
      bool at_parent = false;
      done(local_index_.Remove(key, &at_parent));
    });
    if (!queued) done(errors::Overloaded());
    return;
  }
  v1::ShareQuery query;
  query.set_relay(relay);
  *query.mutable_remove() = key;
  queries_.Ask(std::move(query), [key, relay, done = std::move(done)](
                                     const absl::StatusOr<v1::AnswerShareQueryRequest>& answer) {
    if (!answer.ok()) return done(answer.status());
    if (answer->has_share()) return done(absl::OkStatus());
    done(answer->fault().empty() ? errors::ShareNotFound(key)
                                 : errors::RelayFailed(relay, answer->fault()));
  });
}

}  // namespace muster
