// A service whose answers cannot be read.
#ifndef MUSTER_SERVICES_COMMON_RPC_TESTING_UNREADABLE_SERVICE_H_
#define MUSTER_SERVICES_COMMON_RPC_TESTING_UNREADABLE_SERVICE_H_

#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/support/byte_buffer.h>

namespace muster::testing {

// Answers each call with bytes that are no message, and leaves it open.
class UnreadableService final : public grpc::CallbackGenericService {
 private:
  class Reactor final : public grpc::ServerGenericBidiReactor {
   public:
    Reactor() {
      StartRead(&request_);  // the transport within a process waits for it
      StartWrite(&bytes_);
    }
    void OnCancel() override { Finish(grpc::Status::CANCELLED); }
    void OnDone() override { delete this; }

   private:
    grpc::ByteBuffer request_;
    const grpc::Slice slice_{"\xff\xff\xff"};
    const grpc::ByteBuffer bytes_{&slice_, 1};
  };

  grpc::ServerGenericBidiReactor* CreateReactor(grpc::GenericCallbackServerContext*) override {
    return new Reactor;
  }
};

}  // namespace muster::testing

#endif  // MUSTER_SERVICES_COMMON_RPC_TESTING_UNREADABLE_SERVICE_H_
