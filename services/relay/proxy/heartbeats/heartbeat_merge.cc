#include "services/relay/proxy/heartbeats/heartbeat_merge.h"

#include <algorithm>
#include <cstddef>
#include <string>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "services/common/heartbeat/heartbeat_check.h"
#include "services/common/heartbeat/progress_report.h"

namespace muster {
namespace {

using Activities = google::protobuf::RepeatedPtrField<v1::Activity>;
using Names = google::protobuf::RepeatedPtrField<std::string>;

// The memory of a list of activities, and the memory that the bytes of a message do not show.
constexpr size_t kMaxActivityBytes = size_t{512} << 10;
constexpr size_t kBytesOfActivity = 300;
constexpr size_t kBytesOfName = 48;

bool HasAppended(const v1::Activity& activity) {
  return activity.has_progress() && IsAppend(activity.progress());
}

size_t CostOf(const v1::Activity& activity) {
  const v1::ReportProgressRequest& progress = activity.progress();
  const int names =
      progress.failures_size() + progress.errors_size() + progress.append_failing_size();
  return activity.ByteSizeLong() + kBytesOfActivity + kBytesOfName * static_cast<size_t>(names);
}

void DropOldest(Activities* activities) {
  size_t bytes = 0;
  int first = activities->size();
  while (first > 0 && activities->size() - first < kMaxActivities) {
    bytes += CostOf(activities->Get(first - 1));
    if (bytes > kMaxActivityBytes) break;
    --first;
  }
  activities->DeleteSubrange(0, first);
}

// The place of each pair: a search for each activity would delay the heartbeats of others.
class PairIndex {
 public:
  explicit PairIndex(Activities& activities) : activities_(activities) {
    for (int i = 0; i < activities.size(); ++i) places_.emplace(NameOf(activities[i]), i);
  }

  // Returns null for an unknown pair.
  v1::Activity* Find(const v1::Activity& activity) {
    const auto place = places_.find(NameOf(activity));
    return place == places_.end() ? nullptr : activities_.Mutable(place->second);
  }
  void Add(const v1::Activity& activity) {
    places_.emplace(NameOf(activity), activities_.size());
    *activities_.Add() = activity;
  }

 private:
  static std::string NameOf(const v1::Activity& activity) {
    return absl::StrCat(activity.key().run(), "/", activity.key().plugin());
  }

  Activities& activities_;
  absl::flat_hash_map<std::string, int> places_;
};

int64_t AddCounts(int64_t a, int64_t b) { return std::min(kMaxProgressCount, a + b); }

// Returns one report with the effect of an earlier one and then an appended one, as the status
// service applies them. Appended reports of a sender either all add to the total, or none does.
v1::ReportProgressRequest AddReports(const v1::ReportProgressRequest& earlier,
                                     const v1::ReportProgressRequest& appended) {
  v1::ReportProgressRequest sum = earlier;
  sum.set_message(appended.message());
  if (IsAppend(earlier)) {
    sum.set_append_completed(AddCounts(earlier.append_completed(), appended.append_completed()));
    sum.set_append_totals(earlier.append_totals() || appended.append_totals());
    sum.mutable_append_failing()->MergeFrom(appended.append_failing());
  } else {
    sum.set_completed(AddCounts(earlier.completed(), appended.append_completed()));
    if (appended.append_totals()) {
      sum.set_total(
          AddCounts(earlier.total(), appended.append_completed() + appended.append_failing_size()));
    }
    sum.mutable_failures()->MergeFrom(appended.append_failing());
  }
  CutProgress(&sum);
  return sum;
}

// Returns a new message: one that is changed keeps the memory of longer texts.
v1::Activity Merge(const v1::Activity& earlier, const v1::Activity& later) {
  v1::Activity merged = later;
  if (later.phase() == v1::PHASE_UNSPECIFIED) merged.set_phase(earlier.phase());
  if (!earlier.has_progress()) return merged;
  if (!later.has_progress()) {
    *merged.mutable_progress() = earlier.progress();
  } else if (HasAppended(later)) {
    *merged.mutable_progress() = AddReports(earlier.progress(), later.progress());
  }
  return merged;
}

}  // namespace

void MergeHeartbeat(const v1::StreamHeartbeatsRequest& heartbeat,
                    v1::StreamHeartbeatsRequest* merged) {
  merged->set_sequence(heartbeat.sequence());
  *merged->mutable_uptime() = heartbeat.uptime();
  *merged->mutable_time() = heartbeat.time();
  if (heartbeat.goodbye()) merged->set_goodbye(true);
  if (heartbeat.activities_size() == 0) return;
  PairIndex index(*merged->mutable_activities());
  for (const v1::Activity& activity : heartbeat.activities()) {
    if (v1::Activity* const earlier = index.Find(activity)) {
      *earlier = Merge(*earlier, activity);
    } else {
      index.Add(activity);
    }
  }
  DropOldest(merged->mutable_activities());
}

v1::StreamHeartbeatsRequest AppendedProgress(const v1::StreamHeartbeatsRequest& heartbeat) {
  v1::StreamHeartbeatsRequest appended;
  for (const v1::Activity& activity : heartbeat.activities()) {
    if (!HasAppended(activity)) continue;
    v1::Activity& added = *appended.add_activities();
    *added.mutable_key() = activity.key();
    *added.mutable_progress() = activity.progress();
  }
  return appended;
}

void RemoveAppendedProgress(v1::StreamHeartbeatsRequest* heartbeat) {
  for (v1::Activity& activity : *heartbeat->mutable_activities()) {
    if (HasAppended(activity)) delete activity.release_progress();  // clear_ may keep the memory
  }
}

void AddAppendedProgress(const v1::StreamHeartbeatsRequest& unsent,
                         v1::StreamHeartbeatsRequest* first) {
  const v1::StreamHeartbeatsRequest appended = AppendedProgress(unsent);
  if (appended.activities_size() == 0) return;
  PairIndex index(*first->mutable_activities());
  for (const v1::Activity& activity : appended.activities()) {
    v1::Activity* const known = index.Find(activity);
    if (known == nullptr) {
      index.Add(activity);
    } else if (!known->has_progress()) {
      *known->mutable_progress() = activity.progress();
    }
  }
}

}  // namespace muster
