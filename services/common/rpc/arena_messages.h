// Messages of unary RPCs on an arena: for answers that hold many thousand small messages.
#ifndef MUSTER_SERVICES_COMMON_RPC_ARENA_MESSAGES_H_
#define MUSTER_SERVICES_COMMON_RPC_ARENA_MESSAGES_H_

#include <google/protobuf/arena.h>
#include <grpcpp/support/message_allocator.h>

namespace muster {

// For SetMessageAllocatorFor_<method>; outlives the server. Thread-safe. Each call has an arena of
// its own, which is gone, whole, when the answer was sent.
template <typename Request, typename Response>
class ArenaMessages : public grpc::MessageAllocator<Request, Response> {
 public:
  grpc::MessageHolder<Request, Response>* AllocateMessages() override { return new Holder(); }

 private:
  class Holder : public grpc::MessageHolder<Request, Response> {
   public:
    Holder() : arena_(Options()) {
      this->set_request(google::protobuf::Arena::CreateMessage<Request>(&arena_));
      this->set_response(google::protobuf::Arena::CreateMessage<Response>(&arena_));
    }
    void Release() override { delete this; }

   private:
    static google::protobuf::ArenaOptions Options() {
      google::protobuf::ArenaOptions options;
      options.start_block_size = 4 * 1024;
      options.max_block_size = 256 * 1024;
      return options;
    }

    google::protobuf::Arena arena_;
  };
};

}  // namespace muster

#endif  // MUSTER_SERVICES_COMMON_RPC_ARENA_MESSAGES_H_
