// The limits of the transport, with their reasons.
#ifndef MUSTER_SERVICES_COMMON_RPC_LIMITS_H_
#define MUSTER_SERVICES_COMMON_RPC_LIMITS_H_

#include <cstddef>
#include <cstdint>

namespace muster {

// The largest raw chunk ever announced, when few uploads are open: larger ones are not faster,
// and each stream may hold one in gRPC and one in the handler.
inline constexpr int kChunkMaxLarge = 1024 * 1024;

// The largest raw chunk when many uploads are open.
inline constexpr int kChunkMaxSmall = 128 * 1024;

// The largest chunk as it is sent: a zstd frame of bytes that cannot be compressed has a header,
// and one for each block.
inline constexpr int kEncodedChunkMax = kChunkMaxLarge + kChunkMaxLarge / 64;

// Upload streams of one node, or of the credential of one pair: it has few results at a time. The
// stream of a lost connection stays open for up to a minute. It is counted until another stream
// resumes its upload.
inline constexpr int kUploadStreamsOfNode = 16;

// The bytes that a sender may send without an acknowledgement: at 100 ms of round trip still
// 160 MB/s.
inline constexpr int kUploadWindow = 16 * 1024 * 1024;

// A message is at most a chunk with its header; a plan of 100,000 nodes (CreateRun) is the only
// other large one and has to fit as well. gRPC grants a peer credit for one whole message, so this
// bounds what a stream can make a server hold.
inline constexpr int kMaxMessageBytes = 8 * 1024 * 1024;

// The same for a service without uploads and plans. The largest are batches of heartbeats, which
// relays send in 1 MiB.
inline constexpr int kMaxSmallMessageBytes = 2 * 1024 * 1024;

// Messages of peers without a certificate: proofs of join tokens.
inline constexpr int kMaxOpenMessageBytes = 64 * 1024;

// The memory of gRPC for messages in transit, for all connections of a listener. If more is
// needed, gRPC makes senders wait, and then ends connections.
inline constexpr size_t kServerMemoryBytes = size_t{1} << 30;
inline constexpr size_t kOpenServerMemoryBytes = size_t{64} << 20;

// Smaller requests are not counted: the queue of the executor bounds their number.
inline constexpr int64_t kCountedRequestBytes = 16 * 1024;

// Requests that are being handled, in all and of one identity: several plans, or some hundred
// results of 64 KiB through a gateway.
inline constexpr int64_t kRequestBytes = int64_t{256} << 20;
inline constexpr int64_t kRequestBytesOfCaller = int64_t{32} << 20;

// gRPC's default, made explicit: identities, deadlines and error details fit, PEM chains do not.
inline constexpr int kMaxMetadataBytes = 8 * 1024;

// A TLS handshake that takes longer is a slow-loris (gRPC's default is 120 s).
inline constexpr int kHandshakeTimeoutMs = 10'000;

// Streams of one connection. A gateway or a relay carries many deliveries over one.
inline constexpr int kMaxStreamsPerConnection = 1024;

// Streams of a process that wait for their first message, each for some seconds. A stream takes far
// more memory than its timer.
inline constexpr int kMaxStreamTimers = 1'000'000;

// The interval of checks for replaced certificate files.
inline constexpr unsigned kCertificateRefreshSeconds = 1;

}  // namespace muster

#endif  // MUSTER_SERVICES_COMMON_RPC_LIMITS_H_
