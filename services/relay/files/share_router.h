// How shared files get on: up to the parent until a relay knows the target, then down, relay by
// relay, to the one that the target hangs below.
//
// Up, this relay sends. Down, it offers on the stream of the relay below, which fetches, stores,
// and says so; only then this one lets go of the bytes. All that has to last is in the store's
// records; after a kill it begins again from them.
#ifndef MUSTER_SERVICES_RELAY_FILES_SHARE_ROUTER_H_
#define MUSTER_SERVICES_RELAY_FILES_SHARE_ROUTER_H_

#include <functional>
#include <map>
#include <memory>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/random/random.h"
#include "absl/time/time.h"
#include "services/common/base/executor.h"
#include "services/common/base/mutex.h"
#include "services/common/shares/share_transfer.h"
#include "services/relay/files/share_aggregator_client.h"
#include "services/relay/files/share_parts.h"
#include "services/relay/files/target_route.h"

namespace muster {

// Whether an error says that trying again cannot help: who made it has looked at the file.
bool IsRefusal(const absl::Status& status);

// Thread-safe.
class ShareRouter {
 public:
  struct Times {
    absl::Duration look = absl::Seconds(1);
    // Up and down alike, with jitter: what fails is tried again, twice as late each time.
    absl::Duration first_retry = absl::Seconds(1);
    absl::Duration longest_retry = absl::Seconds(30);
    // An offer of which the relay below says nothing is told again: it may have been lost.
    absl::Duration offer_again = absl::Seconds(10);
    // How long a target is away before the parent is asked whether it is elsewhere.
    absl::Duration elsewhere = absl::Minutes(1);
    // After a start nodes come back, and nobody is unknown yet.
    absl::Duration settling = absl::Seconds(45);
    absl::Duration sweep = absl::Seconds(10);
  };

  // `centre` outlives it; `every_look` is called about once every `look`.
  ShareRouter(ShareParts parts, Times times, const ShareAggregatorClient& aggregator,
              std::function<void()> every_look);
  ~ShareRouter();

  // Once, when there may be a parent.
  void Start();
  // Ends what is under way, and begins nothing more.
  void Stop();

  // There may be something to do. Does not wait.
  void Wake();
  // From the parent. Does not wait.
  void HandleOffers(const v1::ShareOffers& offers);
  // Whether unknown targets are refused by now.
  bool settled() const;

 private:
  // What is tried again, and when.
  struct Plan {
    absl::Duration next = absl::ZeroDuration();  // monotonic
    int tries = 0;
    int broken = 0;  // of these, how often the bytes were not what was signed
    bool busy = false;
    std::weak_ptr<ChildLink> offered_to;
  };
  // By the parent, to be fetched.
  struct Offered {
    v1::SharedFile file;
    Plan plan;
  };

  void Run(const std::stop_token& stop) ABSL_LOCKS_EXCLUDED(mutex_);
  void Tick() ABSL_LOCKS_EXCLUDED(mutex_);
  void Act(const ShareRecord& record);
  void ActHeld(const ShareRecord& record);
  void MarkDelivered(const ShareRecord& record);
  void Refuse(const ShareRecord& record, const absl::Status& why);
  void StartRegisterLookup(const ShareRecord& record);
  void Offer(const ShareRecord& record, const std::string& child);
  bool IsDue(const std::string& plan, const std::shared_ptr<ChildLink>& link)
      ABSL_LOCKS_EXCLUDED(mutex_);
  void SendOffers();
  void AskToRemove(const ShareRecord& record);
  void StartPush(const ShareRecord& record, bool only_if_elsewhere);
  void Push(const ShareRecord& record, bool only_if_elsewhere) ABSL_LOCKS_EXCLUDED(mutex_);
  void StartReport(const ShareRecord& record);
  void Report(const ShareRecord& record);
  void StartFetches() ABSL_LOCKS_EXCLUDED(mutex_);
  void Fetch(const v1::SharedFile& file) ABSL_LOCKS_EXCLUDED(mutex_);
  bool GiveUpFetch(const v1::SharedFile& file, const absl::Status& why) ABSL_LOCKS_EXCLUDED(mutex_);
  absl::Status RefuseOffer(const v1::SharedFile& file, const absl::Status& why);
  absl::Status FetchNow(const v1::SharedFile& file);
  void RemoveHere(const v1::ShareKey& key);
  // Runs `work` unless the plan is busy or not due; false then.
  bool Begin(const std::string& plan, Executor& executor, absl::AnyInvocable<void()> work)
      ABSL_LOCKS_EXCLUDED(mutex_);
  void Done(const std::string& plan, const absl::Status& status, absl::Duration least)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // When to try again, after this came of it.
  void BackOff(Plan& plan, const absl::Status& status, absl::Duration least)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Whether trying again cannot help any more.
  bool IsHopeless(Plan& plan, const absl::Status& status) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Change(const ShareRecord& was, ShareRecord is);
  void ForgetBackOff() ABSL_LOCKS_EXCLUDED(mutex_);

  const ShareParts parts_;
  const Times times_;
  const ShareAggregatorClient& aggregator_;
  const std::function<void()> every_look_;
  const absl::Duration began_;
  CallStopper stopper_;

  Mutex mutex_;
  StoppableCondVar wake_;
  bool woken_ ABSL_GUARDED_BY(mutex_) = false;
  std::map<std::string, Plan> plans_ ABSL_GUARDED_BY(mutex_);
  std::map<ShareName, Offered> offered_ ABSL_GUARDED_BY(mutex_);
  std::map<ShareName, v1::ShareKey> remove_ ABSL_GUARDED_BY(mutex_);  // for the parent
  absl::BitGen random_ ABSL_GUARDED_BY(mutex_);

  // Of the looking thread alone.
  std::map<std::string, v1::ShareOffers> offers_;  // by child
  std::weak_ptr<grpc::Channel> last_parent_;
  absl::Duration swept_at_;

  // Up and down apart, so that neither way waits for the other.
  Executor up_;
  Executor down_;
  std::jthread thread_;
};

}  // namespace muster

#endif  // MUSTER_SERVICES_RELAY_FILES_SHARE_ROUTER_H_
