#include "services/status/pair_reader.h"

#include <chrono>
#include <utility>

#include "services/common/errors/heartbeats.h"

namespace muster {
namespace {

// Enough for ten million pairs. A half-open connection ends earlier, by its probes.
constexpr std::chrono::minutes kWithin(10);
constexpr absl::Duration kFirstWithin = absl::Seconds(10);

absl::Status Silent(absl::Duration) {
  return absl::UnavailableError("the aggregator does not answer");
}

}  // namespace

// One run.
class PairReader::Session final
    : public ClientStreamHandler<v1::FollowChangesRequest, v1::FollowChangesResponse> {
 public:
  Session(PairReader& reader, Order order) : reader_(reader), order_(std::move(order)) {}

  void OnStart(const std::shared_ptr<Stream>& stream) override {
    stream_ = stream;
    stream->ReadNext();
    v1::FollowChangesRequest request;
    request.set_pairs_of_run(order_.run);
    stream->SendLast(std::move(request));
  }

  void OnMessage(v1::FollowChangesResponse event) override {
    if (const auto stream = stream_.lock()) stream->ReadNext();
    order_.add(event);
  }

  void OnEnd(const absl::Status& status, EndedBy) override {
    order_.done(status);
    reader_.SessionEnded();
  }

 private:
  PairReader& reader_;
  const Order order_;
  std::weak_ptr<Stream> stream_;  // set in OnStart
};

PairReader::PairReader(GetChannel aggregator, TimerService& timers, Executor& executor)
    : aggregator_(std::move(aggregator)),
      timers_(timers),
      executor_(executor),
      open_(timers, executor, [this] { Open(); }) {}

void PairReader::Read(const std::string& run, EndedRuns::Add add, EndedRuns::Done done) {
  {
    MutexLock lock(mutex_);
    if (!stopped_) {
      orders_.push_back({run, std::move(add), std::exchange(done, nullptr)});
      if (std::exchange(reading_, true)) return;
    }
  }
  if (done != nullptr) return done(errors::StatusStopping());
  open_.RunNow();
}

// Runs on the executor, when no other stream is open.
void PairReader::Open() {
  owner_.reset();
  std::shared_ptr<Session> session;
  {
    MutexLock lock(mutex_);
    if (orders_.empty()) {
      reading_ = false;
      return;
    }
    session = std::make_shared<Session>(*this, std::move(orders_.front()));
    orders_.pop_front();
  }
  StreamOptions options;
  options.on_executor = true;
  options.first_within = kFirstWithin;
  options.first_late = Silent;
  auto context = std::make_unique<grpc::ClientContext>();
  context->set_deadline(std::chrono::system_clock::now() + kWithin);
  owner_ = std::make_unique<Owner>(
      Stream::Start(aggregator_(), "/muster.v1.ChangeService/FollowChanges", options, session,
                    {.executor = &executor_, .timers = &timers_}, std::move(context)));
}

void PairReader::SessionEnded() { open_.RunNow(); }

void PairReader::Stop() {
  open_.Stop();
  owner_.reset();  // cancels, and waits for the last callback
  std::deque<Order> orders;
  {
    MutexLock lock(mutex_);
    stopped_ = true;
    orders = std::exchange(orders_, {});
  }
  for (const Order& order : orders) order.done(errors::StatusStopping());
}

}  // namespace muster
