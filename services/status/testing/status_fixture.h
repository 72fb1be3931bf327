// A status service with its aggregator, and their callers: real mutual TLS, a real feed.
#ifndef MUSTER_SERVICES_STATUS_TESTING_STATUS_FIXTURE_H_
#define MUSTER_SERVICES_STATUS_TESTING_STATUS_FIXTURE_H_

#include <grpcpp/grpcpp.h>

#include <memory>
#include <string>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "muster/v1/heartbeats.grpc.pb.h"
#include "muster/v1/results.grpc.pb.h"
#include "muster/v1/runs.grpc.pb.h"
#include "muster/v1/status.grpc.pb.h"
#include "services/common/rpc/status.h"
#include "testing/fixtures/await.h"
#include "testing/fixtures/test_status.h"

namespace muster::testing {

// A stream of heartbeats; without a goodbye its end is a crash.
class SenderStream {
 public:
  SenderStream(const std::shared_ptr<grpc::Channel>& channel, const std::string& node)
      : stub_(v1::HeartbeatService::NewStub(channel)), stream_(stub_->StreamHeartbeats(&context_)) {
    request_.set_node(node);
    static int processes = 0;
    request_.set_instance_id(absl::StrCat("process-", ++processes));
  }
  ~SenderStream() {
    context_.TryCancel();
    stream_->Finish();
  }

  bool Send(const std::string& run, const std::string& plugin, v1::Phase phase) {
    request_.set_sequence(request_.sequence() + 1);
    request_.clear_activities();
    v1::Activity* activity = request_.add_activities();
    activity->mutable_key()->set_run(run);
    activity->mutable_key()->set_plugin(plugin);
    activity->mutable_key()->set_node(request_.node());
    activity->set_phase(phase);
    v1::StreamHeartbeatsResponse response;
    return stream_->Write(request_) && stream_->Read(&response);
  }

 private:
  const std::unique_ptr<v1::HeartbeatService::Stub> stub_;
  grpc::ClientContext context_;
  const std::unique_ptr<
      grpc::ClientReaderWriter<v1::StreamHeartbeatsRequest, v1::StreamHeartbeatsResponse>>
      stream_;
  v1::StreamHeartbeatsRequest request_;
};

class StatusFixture : public ::testing::Test {
 protected:
  std::string CreateRun(const std::vector<std::string>& nodes) {
    const std::string run = fleet_.CreateRun({"hostfacts"}, nodes).id();
    const auto count = static_cast<int64_t>(nodes.size());
    status_.Await(run, [count](const v1::RunStatus& s) { return s.counts().planned() == count; });
    return run;
  }

  void Deliver(const std::string& run, const std::string& node) {
    grpc::ClientContext context;
    v1::Result result;
    const auto request = SmallResult(run, "hostfacts", node, "{}");
    const auto channel = fleet_.Connect(fleet_.Credential(run, "hostfacts", node));
    const grpc::Status status =
        v1::ResultService::NewStub(channel)->SubmitResult(&context, request, &result);
    ASSERT_TRUE(status.ok()) << status.error_message();
  }

  void Cancel(const std::string& run) {
    grpc::ClientContext context;
    v1::CancelRunRequest request;
    request.set_run(run);
    v1::Run cancelled;
    const auto stub = v1::RunService::NewStub(fleet_.Connect(fleet_.admin()));
    const grpc::Status status = stub->CancelRun(&context, request, &cancelled);
    ASSERT_TRUE(status.ok()) << status.error_message();
  }

  absl::Status Report(const TestIdentity& identity, const v1::ReportProgressRequest& request) {
    grpc::ClientContext context;
    v1::ReportProgressResponse response;
    return FromGrpc(v1::StatusService::NewStub(status_.Connect(identity))
                        ->ReportProgress(&context, request, &response));
  }

  v1::ReportProgressRequest Progress(const std::string& run, const std::string& node) {
    v1::ReportProgressRequest request;
    request.mutable_key()->set_run(run);
    request.mutable_key()->set_plugin("hostfacts");
    request.mutable_key()->set_node(node);
    request.set_total(10);
    request.set_completed(4);
    return request;
  }

  // Returns the node once its history contains `reason`, or after the limit of Await.
  v1::Node AwaitEvent(const std::string& name, v1::Reason reason) {
    const auto stub = v1::StatusService::NewStub(status_.Connect(fleet_.admin()));
    v1::GetNodeRequest request;
    request.set_node(name);
    v1::Node node;
    EXPECT_TRUE(Await([&] {
      grpc::ClientContext context;
      const grpc::Status got = stub->GetNode(&context, request, &node);
      EXPECT_TRUE(got.ok()) << got.error_message();
      return absl::c_any_of(node.events(),
                            [&](const v1::NodeEvent& event) { return event.reason() == reason; });
    })) << "the history of "
        << name << " does not contain " << v1::Reason_Name(reason);
    return node;
  }

  TestIdentity Gateway() { return fleet_.Issue(ServiceIdentity{ServiceRole::kGateway, "test"}); }

  std::string ViewerUri(const std::string& run) {
    return absl::StrCat("spiffe://", run, ".", fleet_.name(), "/viewer");
  }

  absl::Status GetAsViewer(const std::string& viewer_of, const std::string& run) {
    v1::GetStatusRequest request;
    request.set_run(run);
    return status_.Get(Gateway(), request, ViewerUri(viewer_of)).status();
  }

  TestFleet fleet_;
  TestStatus status_{fleet_};
};

}  // namespace muster::testing

#endif  // MUSTER_SERVICES_STATUS_TESTING_STATUS_FIXTURE_H_
