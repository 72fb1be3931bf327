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

// The bytes that a sender may send without an acknowledgement when no other upload is open: at 100
// ms of round trip still 160 MB/s. Further uploads get less (upload_pace.h).
inline constexpr int kUploadWindowLarge = 16 * 1024 * 1024;

// The least that each may send, however many are open: 5 MB/s each.
inline constexpr int kUploadWindowSmall = 512 * 1024;

// The largest message of an operator, relay or service: a plan of 100,000 nodes (CreateRun,
// SubmitJob) has to fit. A larger one is refused when its length arrives (frame_guard.h).
inline constexpr int kMaxMessageBytes = 8 * 1024 * 1024;

// The same for the sources of results: nodes, pairs and plugins. The largest are chunks, and
// heartbeats with 1,000 activities.
inline constexpr int kMaxSourceMessageBytes = 2 * 1024 * 1024;

// The same for viewers, which name a run.
inline constexpr int kMaxViewerMessageBytes = 64 * 1024;

// The same for a service without uploads and plans. The largest are batches of heartbeats: of 1
// MiB, with a list of the senders without changes.
inline constexpr int kMaxSmallMessageBytes = 2 * 1024 * 1024;

// Messages of peers without a certificate: proofs of join tokens.
inline constexpr int kMaxOpenMessageBytes = 64 * 1024;

// The memory of gRPC for messages in transit, for all connections of a listener. If more is
// needed, gRPC makes senders wait, and then ends connections.
inline constexpr size_t kServerMemoryBytes = size_t{1} << 30;
// The same for the aggregator. Below a fifth of it gRPC grants each connection a window of 4 MiB or
// more, whatever the service reads; above half, windows shrink to nothing. So this bounds the
// memory of many simultaneous uploads.
inline constexpr size_t kUploadServerMemoryBytes = size_t{192} << 20;
inline constexpr size_t kOpenServerMemoryBytes = size_t{64} << 20;

// Smaller requests are not counted: the queue of the executor bounds their number.
inline constexpr int64_t kCountedRequestBytes = 16 * 1024;

// Requests that are being handled, in all and of one identity: several plans, or some hundred
// results of 64 KiB through a gateway.
inline constexpr int64_t kRequestBytes = int64_t{256} << 20;
inline constexpr int64_t kRequestBytesOfCaller = int64_t{32} << 20;

// Smaller answers are not counted: a call takes about as much itself.
inline constexpr int64_t kCountedAnswerBytes = 4 * 1024;

// Answers that were not taken yet, in all and of one identity, as they are sent; the memory is
// about twice as much. A client that reads has a few of them in transit. The calls of one that does
// not are ended (stuck_readers.h).
inline constexpr int64_t kAnswerBytes = int64_t{256} << 20;
inline constexpr int64_t kAnswerBytesOfCaller = int64_t{32} << 20;

// gRPC's default, made explicit: identities, deadlines and error details fit, PEM chains do not.
inline constexpr int kMaxMetadataBytes = 8 * 1024;

// A TLS handshake that takes longer is a slow-loris (gRPC's default is 120 s).
inline constexpr int kHandshakeTimeoutMs = 10'000;

// Streams of one connection. A gateway or a relay carries many deliveries over one.
inline constexpr int kMaxStreamsPerConnection = 1024;

// The same of the program of one node, one pair or a viewer, which forwards nothing.
inline constexpr int kMaxStreamsOfNode = 512;

// The same at listeners for peers without a certificate, and of the health service: a peer has one
// or two calls.
inline constexpr int kMaxOpenStreamsPerConnection = 16;

// Streams of one connection whose peer has not acknowledged the settings of the server, and the
// metadata of each. HTTP/2 recommends at least 100. They differ from the numbers above: see
// BoundUnackedSettings.
inline constexpr int kMaxUnackedStreams = 100;
inline constexpr int kMaxUnackedMetadataBytes = kMaxMetadataBytes + 1;

// The bytes of a connection that are read and parsed in one step. All streams that they begin exist
// at the same time, even if the peer resets each immediately; a stream takes 15 of them and some 5
// KiB of memory.
inline constexpr int kReadAtOnce = 64 * 1024;
inline constexpr int kOpenReadAtOnce = 8 * 1024;

// Streams of a process that wait for their first message, each for some seconds. A stream takes far
// more memory than its timer.
inline constexpr int kMaxStreamTimers = 1'000'000;

// Calls of one identity per second, and those that wait for a thread of gRPC (CallAdmission): of
// the program of one node or one pair, and of a service or a credential that speaks for many
// machines.
inline constexpr double kCallsOfNode = 5'000;
inline constexpr double kCallBurstOfNode = 20'000;
inline constexpr int64_t kWaitingCallsOfNode = 256;
inline constexpr double kCallsOfMany = 100'000;
inline constexpr double kCallBurstOfMany = 200'000;
inline constexpr int64_t kWaitingCallsOfMany = 4096;
// Waiting calls of a gateway or relay for one client that is not a node, a pair or a viewer.
inline constexpr int64_t kWaitingForwardedCalls = 1024;

// The same of one connection without a certificate. Joining takes two calls.
inline constexpr double kOpenCalls = 100;
inline constexpr double kOpenCallBurst = 200;
inline constexpr int64_t kOpenWaitingCalls = 64;

// Connections of one address and in all: thousands of nodes may share one address. In all there are
// never more than half of the descriptors that the process may open, or a quarter without a
// certificate. A listener may exceed them for a second (ConnectionCloser).
inline constexpr size_t kConnectionsOfAddress = 20'000;
inline constexpr size_t kConnections = 50'000;
inline constexpr size_t kOpenConnectionsOfAddress = 256;
inline constexpr size_t kOpenConnections = 2'048;

// The time after which a connection without calls is closed. A program connects again with its next
// call. Joining is over in a second; a connection for it lives at most twice its age.
inline constexpr int kIdleConnectionMs = 10 * 60'000;
inline constexpr int kIdleOpenConnectionMs = 10'000;
inline constexpr int kOpenConnectionAgeMs = 30'000;

// The interval of checks for replaced certificate files.
inline constexpr unsigned kCertificateRefreshSeconds = 1;

}  // namespace muster

#endif  // MUSTER_SERVICES_COMMON_RPC_LIMITS_H_
