// Package limits is the table of the gateway's limits: what clients, nodes and services may send, occupy or wait for. The
// checks read their values here, so that the table is complete. The times of the gateway's own calls, retries and closing
// connections are not in the table; they are constants beside their code.
package limits

import (
	"fmt"
	"io"
	"strconv"
	"time"

	"muster.example/services/client/go/channel"
	"muster.example/services/client/go/reasons"
)

// Row describes one limit for operators.
type Row struct {
	Name    string
	Default string
	Per     string // what is counted together: an identity, an address, a request, everything
	Key     string // in the configuration; "": it cannot be changed
	Metric  string // "": none
	Reason  string // what the client gets
	Action  string // what the operator does
}

var rows []Row

// Table returns all limits, in the order of this file.
func Table() []Row { return append([]Row(nil), rows...) }

// Print writes the table in Markdown.
func Print(to io.Writer) {
	fmt.Fprintln(to, "| limit | default | per | key | metric | a client gets | what to do |\n|---|---|---|---|---|---|---|")
	code := func(text string) string {
		if text == "" {
			return "-"
		}
		return "`" + text + "`"
	}
	for _, row := range rows {
		fmt.Fprintf(to, "| %s | %s | %s | %s | %s | %s | %s |\n",
			row.Name, row.Default, row.Per, code(row.Key), code(row.Metric), row.Reason, row.Action)
	}
}

func count(value int, row Row) int {
	row.Default = strconv.Itoa(value)
	rows = append(rows, row)
	return value
}

func size(value int64, row Row) int64 {
	units, shown := []string{"bytes", "KiB", "MiB", "GiB"}, value
	for len(units) > 1 && shown >= 1<<10 && shown%(1<<10) == 0 {
		shown, units = shown>>10, units[1:]
	}
	row.Default = fmt.Sprintf("%d %s", shown, units[0])
	rows = append(rows, row)
	return value
}

func wait(value time.Duration, row Row) time.Duration {
	switch {
	case value%time.Hour == 0:
		row.Default = fmt.Sprintf("%d h", value/time.Hour)
	case value%time.Minute == 0:
		row.Default = fmt.Sprintf("%d min", value/time.Minute)
	case value%time.Second == 0:
		row.Default = fmt.Sprintf("%d s", value/time.Second)
	default:
		row.Default = fmt.Sprintf("%d ms", value/time.Millisecond)
	}
	rows = append(rows, row)
	return value
}

const (
	refusedHandshakes = "muster_gateway_refused_handshakes_total"
	refusals          = "muster_gateway_limit_refusals_total"
	requests          = "muster_gateway_requests_total"

	closed = "muster_gateway_closed_connections_total"

	sharers = "identity; certificate of a viewer or a plugin" // fleet.HolderOf
)

// Connections and handshakes.
var (
	Connections = count(4096, Row{Name: "open connections", Per: "port", Key: "limits.connections",
		Metric: "muster_gateway_connections", Reason: "a wait in the kernel's queue", Action: "raise it, and the limit of open files"})
	ConnectionsOfAddress = count(1024, Row{Name: "open connections of an address", Per: "address (IPv6: /64) and port",
		Key: "limits.connections_per_address", Metric: refusedHandshakes + `{reason="address_limit"}`, Reason: "a closed connection",
		Action: "raise it if many clients share one proxy or address translation"})
	ConnectionsOfIdentity = count(64, Row{Name: "open connections of an identity", Per: "identity and port",
		Key: "limits.connections_per_identity", Metric: refusedHandshakes + `{reason="identity_limit"}`, Reason: reasons.TooManyConnections,
		Action: "close connections of that client, or raise it"})
	Handshakes = count(256, Row{Name: "TLS handshakes in progress", Per: "port", Metric: "muster_gateway_handshakes",
		Reason: "a wait", Action: "look for the addresses in the log"})
	HandshakesOfAddress = count(64, Row{Name: "TLS handshakes in progress of an address", Per: "address and port",
		Key: "limits.handshakes_per_address", Metric: "muster_gateway_handshakes", Reason: "a wait",
		Action: "raise it if many clients share one proxy or address translation"})
	HelloTime = wait(3*time.Second, Row{Name: "time to a client's first TLS message", Per: "connection",
		Metric: refusedHandshakes + `{reason="timeout"}`, Reason: "a closed connection", Action: "check the network of the client"})
	HandshakeTime = wait(10*time.Second, Row{Name: "time of a TLS handshake", Per: "connection",
		Metric: refusedHandshakes + `{reason="timeout"}`, Reason: "a closed connection", Action: "check the network of the client"})
	Streams = count(64, Row{Name: "HTTP/2 streams", Per: "connection", Reason: "a wait of the client", Action: "-"})
)

// Frames of HTTP/2, counted before net/http reads them. Beyond a limit the connection is closed, and new ones of its source
// are refused for FloodPause.
var (
	// A client sends its own settings once, and acknowledges those of the gateway.
	FrameSettings = frames(20, "SETTINGS frames; one with many settings counts more", "settings")
	// Go sends one with a reset to see whether the server still answers; browsers and Java send one in seconds.
	FramePings = frames(500, "PING frames", "pings")
	// A page that is left, or a filter that is typed, cancels as many requests as it had in progress: at most Streams.
	FrameResets = frames(500, "RST_STREAM frames", "resets")
	// A script that sends one short request after the other on all streams; RequestsOfIdentity lets it wait before.
	FrameHeaders = frames(5000, "HEADERS frames", "requests")
	// The last frame of a body is one. Clients send JSON in frames of 4 to 16 KiB.
	FrameSmallData = frames(5000, "DATA frames below 1 KiB", "small_data")
	// Clients send one for each 4 KiB or more that they have read, for the stream and the connection.
	FrameWindowUpdates = frames(2000, "WINDOW_UPDATE frames, besides one for each 512 bytes that the gateway has sent", "window_updates")
	// Browsers send a PRIORITY, PRIORITY_UPDATE or reserved frame with each request of a page.
	FrameOthers = frames(1000, "other frames, such as PRIORITY and CONTINUATION", "other_frames")
	// Many browsers may share an address, and the threads of a script an identity: their requests count here.
	FramesOfSource = count(20_000, Row{Name: "all these frames of one source", Per: "identity, or address of clients without one, and second",
		Metric: closed + `{reason="all_frames"}`, Reason: floodAnswer, Action: floodAction})
	FramesOfConnection = count(16, Row{Name: "first frames of a connection, which are not counted for its source", Per: "connection", Reason: "-", Action: "-"})
	SmallData          = count(1<<10, Row{Name: "bytes below which a DATA frame is small", Per: "frame", Reason: "-", Action: "-"})
	// Twice the head that is accepted: net/http answers a head that is only a little too long.
	HeaderBlock = size(64<<10, Row{Name: "header block as it is sent", Per: "HTTP/2 stream", Metric: closed + `{reason="long_headers"}`,
		Reason: floodAnswer, Action: floodAction})
	// Clients split a header block only at 16 KiB.
	Continuations = count(16, Row{Name: "CONTINUATION frames of a header block", Per: "HTTP/2 stream", Metric: closed + `{reason="long_headers"}`,
		Reason: floodAnswer, Action: floodAction})
	// A client that reconnects immediately must not send its frames again; an honest one retries after such a time.
	FloodPause = wait(10*time.Second, Row{Name: "time in which new connections of a source with too many frames are refused", Per: "identity, or address of clients without one",
		Metric: refusedHandshakes + `{reason="flood"}`, Reason: reasons.TooManyFrames, Action: floodAction})
)

const (
	floodAnswer = "a closed connection"
	floodAction = "find the source in the log; revoke it, or block its address"
)

func frames(value int, name, reason string) int {
	return count(value, Row{Name: name, Per: "connection and second", Metric: closed + `{reason="` + reason + `"}`, Reason: floodAnswer, Action: floodAction})
}

// Requests.
var (
	RequestsOfNode = count(500, Row{Name: "requests of a node, pair or viewer", Per: sharers + ", and second", Reason: "a wait",
		Action: "find the program that loops"})
	RequestsOfOther = count(2000, Row{Name: "requests of another identity, such as an operator", Per: sharers + ", and second", Reason: "a wait",
		Action: "find the program that loops"})
	RequestsOfStream = count(5, Row{Name: "requests as which the begin of a watch or an event stream counts, except for operators", Per: "request", Reason: "-",
		Action: "-"})
	RequestsInProgressOfNode = count(256, Row{Name: "requests in progress of a node, pair or viewer, without watches and event streams", Per: sharers,
		Metric: refusals + `{reason="requests"}`, Reason: reasons.TooManyRequests, Action: "let the client send fewer requests at a time"})
	RequestsInProgressOfOther = count(1024, Row{Name: "requests in progress of another identity, without watches and event streams", Per: sharers,
		Metric: refusals + `{reason="requests"}`, Reason: reasons.TooManyRequests, Action: "let the client send fewer requests at a time"})
	RequestCallers = count(1000, Row{Name: "identities whose requests are counted before those without recent ones are forgotten", Per: "gateway", Reason: "-", Action: "-"})
	HeaderTime     = wait(15*time.Second, Row{Name: "time of a request's head", Per: "request", Reason: "a closed connection", Action: "-"})
	IdleTime       = wait(2*time.Minute, Row{Name: "time between two requests", Per: "connection", Reason: "a closed connection", Action: "-"})
	PaceTime       = wait(time.Minute, Row{Name: "window of the slowest pace", Per: "request", Reason: "REQUEST_STALLED, or a closed connection",
		Action: "check the network of the client"})
	PaceBytes = size(60<<10, Row{Name: "bytes in each window of the slowest pace", Per: "request",
		Reason: "REQUEST_STALLED, or a closed connection", Action: "check the network of the client"})
	CloseDelay = wait(time.Second, Row{Name: "time in which the rest of a refused body is read", Per: "request",
		Reason: "a closed connection", Action: "-"})
	CloseBytes   = size(64<<10, Row{Name: "bytes that are read of a client that is refused before its request", Per: "connection", Reason: "a closed connection", Action: "-"})
	Header       = size(32<<10, Row{Name: "head of a request", Per: "request", Reason: "431", Action: "-"})
	RudderHeader = size(1<<20, Row{Name: "head of a request at Rudder's listener", Per: "request", Reason: "431", Action: "-"})
	PlanBody     = size(16<<20, Row{Name: "JSON of a new run, job or deployment (operators)", Per: "request", Metric: requests + `{code="413"}`,
		Reason: reasons.RequestTooLarge, Action: "name fewer nodes, or use gRPC"})
	Body = size(1<<20, Row{Name: "JSON of any other request", Per: "request", Metric: requests + `{code="413"}`,
		Reason: reasons.RequestTooLarge, Action: "-"})
	BodiesOfIdentity = size(32<<20, Row{Name: "JSON of requests in progress, of an identity", Per: sharers,
		Metric: refusals + `{reason="bodies"}`, Reason: reasons.TooManyRequestBytes, Action: "let the client send fewer requests at a time"})
	Bodies = size(128<<20, Row{Name: "JSON of requests in progress", Per: "gateway", Metric: "muster_gateway_body_bytes",
		Reason: reasons.TooManyRequestBytes, Action: "find the clients in the log"})
	CallTime = wait(30*time.Second, Row{Name: "time of a call to a service", Per: "request", Metric: requests + `{code="504"}`,
		Reason: "the call fails with DEADLINE_EXCEEDED", Action: "check the service and its log"})
	ReadStall = wait(time.Minute, Row{Name: "time in which a service sends nothing of a download", Per: "request",
		Metric: "muster_gateway_broken_reads_total", Reason: "a broken download", Action: "check the service and its log"})
	KeepaliveTime = wait(channel.ProbeInterval, Row{Name: "time between two probes of an idle connection to a service", Per: "connection",
		Reason: "-", Action: "-"})
	KeepaliveTimeout = wait(channel.ProbeTimeout, Row{Name: "time of the answer to a probe", Per: "connection", Reason: "UNAVAILABLE",
		Action: "check the network between gateway and service"})
	CertificateName     = count(128, Row{Name: "name of a certificate in a call to a service", Per: "call", Reason: "a digest of the name", Action: "-"})
	DownloadsOfIdentity = count(16, Row{Name: "downloads of results and archives, of an identity", Per: sharers,
		Metric: refusals + `{reason="downloads"}`, Reason: reasons.TooManyDownloads, Action: "let the client download fewer files at a time"})
	Downloads = count(128, Row{Name: "downloads of results and archives", Per: "gateway", Metric: "muster_gateway_downloads",
		Reason: reasons.TooManyDownloads, Action: "find the slowest readers in the log; let programs download by gRPC"})
	// gRPC would let it grow to 16 MiB, for each reader that is slow.
	DownloadWindow = size(256<<10, Row{Name: "bytes of a download that the aggregator sends ahead of its reader", Per: "download",
		Reason: "the aggregator waits", Action: "-"})
	Response = size(16<<20, Row{Name: "response of a service", Per: "request", Reason: reasons.ResponseTooLarge, Action: "use `page_size`"})
)

// Watches and snapshots of the status.
var (
	Watches = count(2000, Row{Name: "watches and event streams", Per: "gateway", Metric: "muster_gateway_watches",
		Reason: reasons.TooManyStreams, Action: "let pages share one stream"})
	WatchesOfIdentity = count(200, Row{Name: "watches and event streams of an identity", Per: sharers,
		Metric: refusals + `{reason="watches"}`, Reason: reasons.TooManyStreams, Action: "close pages, or issue each viewer its own credential"})
	Fetches = count(8, Row{Name: "snapshots of the status prepared at a time", Per: "gateway", Reason: "a wait, then STATUS_SLOW",
		Action: "-"})
	FetchesOfIdentity = count(2, Row{Name: "messages of watches of a status prepared at a time, of an identity", Per: sharers,
		Reason: "a wait, then STATUS_SLOW", Action: "let pages share one stream"})
	FetchWait = wait(30*time.Second, Row{Name: "wait for the preparation of a snapshot to begin", Per: "request", Reason: reasons.StatusSlow,
		Action: "check the status service and its log"})
	FetchTime = wait(15*time.Second, Row{Name: "time to fetch a snapshot", Per: "request", Reason: reasons.StatusSlow,
		Action: "check the status service and its log"})
	SnapshotsOfIdentity = size(128<<20, Row{Name: "bytes of the status that are sent to one slow reader; one snapshot may be larger", Per: "identity; certificate of a viewer",
		Metric: refusals + `{reason="snapshots"}`, Reason: reasons.TooManyStatusBytes,
		Action: "find the reader in the log; let it read faster, or use only=attention"})
	Snapshots = size(256<<20, Row{Name: "bytes of the status that are sent to slow readers", Per: "gateway",
		Metric: "muster_gateway_snapshot_bytes", Reason: reasons.TooManyStatusBytes, Action: "find the slowest reader in the log"})
	WatchPairs = count(2_000, Row{Name: "pairs of a message of a watch after which the next one waits its turn, as in a snapshot", Per: "message",
		Reason: "-", Action: "-"})
	SmallRun   = count(1_000, Row{Name: "pairs up to which a snapshot has the text of each", Per: "snapshot", Reason: "-", Action: "-"})
	PageSize   = count(10_000, Row{Name: "pairs of one response of the status service", Per: "call", Reason: "-", Action: "-"})
	Shown      = count(10, Row{Name: "pairs of a kind with only=attention", Per: "snapshot", Reason: "-", Action: "-"})
	Compressed = size(16<<10, Row{Name: "size from which a snapshot is sent compressed", Per: "snapshot", Reason: "-", Action: "-"})
	EventGap   = wait(250*time.Millisecond, Row{Name: "least time between two events", Per: "event stream", Reason: "-", Action: "-"})
	LargeGap   = wait(2*time.Second, Row{Name: "the same, of large events", Per: "event stream", Reason: "-", Action: "-"})
	LargeOne   = size(256<<10, Row{Name: "size from which an event is large", Per: "event", Reason: "-", Action: "-"})
	KeepLive   = wait(15*time.Second, Row{Name: "time between two signs of life", Per: "event stream", Reason: "-", Action: "-"})
)

// Tunnels of agents and relays behind proxies that pass no HTTP/2.
var (
	Tunnels = count(2000, Row{Name: "tunnels", Per: "gateway", Key: "limits.tunnels", Metric: "muster_gateway_tunnels",
		Reason: reasons.TooManyTunnels, Action: "raise it, and limits.connections"})
	TunnelsOfAddress = count(256, Row{Name: "tunnels of an address", Per: "address (IPv6: /64)", Key: "limits.tunnels_per_address",
		Metric: refusals + `{reason="tunnels"}`, Reason: reasons.TooManyTunnels, Action: "raise it if many nodes share one proxy or address translation"})
	TunnelConnect = wait(5*time.Second, Row{Name: "time to connect a tunnel to the relay", Per: "tunnel", Reason: reasons.TunnelTargetUnreachable,
		Action: "check the relay and its log"})
	TunnelFirst = wait(20*time.Second, Row{Name: "time to the first byte of a client", Per: "tunnel", Metric: "muster_gateway_tunnels_closed_total" + `{reason="silent"}`,
		Reason: "a closed tunnel", Action: "-"})
	TunnelIdle = wait(2*time.Minute, Row{Name: "time without a byte in either direction", Per: "tunnel", Metric: "muster_gateway_tunnels_closed_total" + `{reason="silent"}`,
		Reason: "a closed tunnel", Action: "check the network of the client"})
	TunnelBuffer = size(32<<10, Row{Name: "bytes that the gateway holds of each direction", Per: "tunnel", Reason: "a wait", Action: "-"})
)

// Browsers.
var (
	Sessions = count(10_000, Row{Name: "links, and browsers that are signed in", Per: "gateway", Metric: "muster_gateway_sessions",
		Reason: "the oldest is signed out", Action: "-"})
	LinkTime = wait(time.Minute, Row{Name: "validity of a link of muster dashboard", Per: "link", Reason: "403",
		Action: "run muster dashboard again"})
	SessionTime = wait(12*time.Hour, Row{Name: "validity of a session", Per: "browser", Reason: reasons.CertificateMissing,
		Action: "run muster dashboard again"})
)

// Drain is how long a stop waits.
var Drain = wait(20*time.Second, Row{Name: "time a stop waits for deliveries and downloads", Per: "gateway", Key: "drain",
	Reason: "503, or a broken download", Action: "raise it for slow clients"})

// Legacy clients.
var (
	ResultBytes = size(0, Row{Name: "result of a legacy client (0: no limit)", Per: "request", Key: "limits.result_bytes",
		Metric: requests + `{code="413"}`, Reason: "413", Action: "raise it, or shrink the results"})
	DeliveryBytes = size(32<<20, Row{Name: "bytes of deliveries that the aggregator has not written", Per: "gateway",
		Metric: "muster_gateway_deliveries_active", Reason: "a wait", Action: "check the aggregator"})
	DeliveryConnections = count(4, Row{Name: "connections for deliveries", Per: "gateway", Key: "limits.delivery_connections",
		Reason: "-", Action: "raise it if one connection is the bottleneck"})
	Hold = wait(time.Minute, Row{Name: "time a delivery waits for the aggregator", Per: "request", Key: "hold",
		Metric: requests + `{code="503"}`, Reason: "503", Action: "check the aggregator; the client sends it again"})
	ProgressBody = size(1<<20, Row{Name: "progress report of a plugin", Per: "request", Reason: "413", Action: "-"})
	ProgressTime = wait(5*time.Second, Row{Name: "time to forward a progress report", Per: "request", Reason: "503", Action: "-"})
	ErrorReport  = size(64<<10, Row{Name: "error report of an old worker", Per: "request", Reason: "stored as a result", Action: "-"})
	FileName     = count(1024, Row{Name: "bytes of a file name", Per: "request", Reason: "a shortened name", Action: "-"})
	MediaType    = count(255, Row{Name: "bytes of a media type", Per: "request", Reason: "no media type", Action: "-"})
	DrainFirst   = size(256<<10, Row{Name: "bytes of a refused body that are read before the answer", Per: "request",
		Reason: "the answer, then a closed connection", Action: "-"})
	DrainBytes = size(4<<30, Row{Name: "bytes of a refused body that are read", Per: "request", Reason: "a closed connection", Action: "-"})
	DrainTime  = wait(10*time.Minute, Row{Name: "time in which a refused body is read", Per: "request", Reason: "a closed connection",
		Action: "-"})
	DrainSilence = wait(5*time.Second, Row{Name: "silence in a refused body", Per: "request", Reason: "the answer, then a closed connection",
		Action: "-"})
	AuthorityLinger = wait(time.Hour, Row{Name: "time a run's listeners stay open after its end, unless a new run needs the port", Per: "run", Reason: "a closed port",
		Action: "-"})
)

// Rudder's relay API. Its other limits are fields of the configuration: docs/rudder.md.
var (
	Uploads          = count(64, Row{Name: "uploads of shared files at a time", Per: "Rudder's listener", Reason: "a wait, then 503", Action: "-"})
	UploadsOfAddress = count(16, Row{Name: "uploads of shared files at a time of an address", Per: "address (IPv6: /64)", Reason: "503",
		Action: "check that address"})
	UploadWait = wait(30*time.Second, Row{Name: "wait of an upload of a shared file for others", Per: "request", Reason: "503", Action: "-"})
	RemoteRuns = count(32, Row{Name: "remote runs at a time", Per: "Rudder's listener", Key: "rudder.remote_runs",
		Reason: "a wait of a minute, then 503", Action: "raise it"})
	RunWait     = wait(time.Minute, Row{Name: "wait of a remote run for others", Per: "request", Reason: "503", Action: "-"})
	RunForm     = size(1<<20, Row{Name: "form of a remote run", Per: "request", Reason: "400", Action: "-"})
	RunNodes    = count(50_000, Row{Name: "nodes of a remote run", Per: "request", Reason: "400", Action: "split the run"})
	RunQuery    = size(64<<10, Row{Name: "value in the query of a remote run", Per: "request", Reason: "400", Action: "-"})
	Condition   = count(1024, Row{Name: "bytes of a condition", Per: "request", Reason: "400", Action: "-"})
	RudderDrain = size(64<<20, Row{Name: "bytes of a refused upload that are read", Per: "request", Reason: "a closed connection", Action: "-"})
	Forwarding  = wait(30*time.Minute, Row{Name: "time to forward a shared file", Per: "request", Reason: "a failed upload", Action: "-"})
	Pending     = count(10_000, Row{Name: "uploads that wait for the policy server", Per: "relay", Reason: "507",
		Action: "check the policy server"})
	PendingOfSource = count(5_000, Row{Name: "uploads of a source that wait for the policy server", Per: "source", Reason: "507",
		Action: "check the policy server, and the programs of the source"})
	QuotaOfSource = count(50, Row{Name: "percent of rudder.shared_files_quota for the files of a source; at least rudder.max_body_size", Per: "source",
		Key: "rudder.shared_files_quota", Reason: "507", Action: "raise it, or remove files of the source"})
	Outcomes     = count(20_000, Row{Name: "outcomes of uploads", Per: "relay", Reason: "404 for the oldest ones of the source with the most", Action: "-"})
	OutcomesTime = wait(7*24*time.Hour, Row{Name: "time an outcome is kept", Per: "upload", Reason: "404", Action: "-"})
	Depth        = count(20, Row{Name: "levels of relays in nodeslist.json", Per: "node", Reason: "an unreachable node", Action: "-"})
	ListFile     = size(256<<20, Row{Name: "nodeslist.json", Per: "file", Reason: "the old list stays in use", Action: "-"})
	RunLine      = count(32<<10, Row{Name: "bytes of a line of output", Per: "line", Reason: "a broken line", Action: "-"})
	Senders      = count(4, Row{Name: "uploads to the policy server at a time", Per: "relay", Reason: "a wait", Action: "-"})
	// It is less than Senders and Askers, so that some of these are left for other sources.
	SendersOfSource = count(2, Row{Name: "uploads of a source that are sent to the policy server, or followed there, at a time", Per: "source",
		Reason: "a wait", Action: "-"})
	Askers       = count(8, Row{Name: "requests of outcomes at a time", Per: "relay", Reason: "a wait", Action: "-"})
	HostNames    = count(96<<10, Row{Name: "host names of one command", Per: "command", Reason: "several commands", Action: "-"})
	ShareHead    = size(64<<10, Row{Name: "the head of a shared file", Per: "request", Reason: "400", Action: "-"})
	PeerReason   = size(300, Row{Name: "a relay's reason in the log", Per: "answer", Reason: "-", Action: "-"})
	LabelledLine = count(64<<10, Row{Name: "bytes of a line of another relay", Per: "line", Reason: "a broken line", Action: "-"})
	JobNodes     = count(50_000, Row{Name: "nodes of one job of a remote run", Per: "job", Reason: "several jobs", Action: "-"})
	LinesAhead   = count(16, Row{Name: "chunks of lines that wait for a slow reader", Per: "remote run", Reason: "a wait of the source", Action: "-"})
	RunStderr    = count(8<<10, Row{Name: "bytes of stderr in a record", Per: "node", Reason: "the end is dropped", Action: "-"})
)

// Memory, files and logs of the gateway.
var (
	HeapGrowth = count(400, Row{Name: "growth of the heap before a collection, in percent of the live heap", Per: "gateway", Reason: "-",
		Action: "set GOGC"})
	// Heap is more than the other limits permit clients to occupy: beyond it, the collector runs again and again.
	Heap       = size(768<<20, Row{Name: "memory of Go before it collects earlier", Per: "gateway", Reason: "-", Action: "set GOMEMLIMIT"})
	ConfigFile = size(1<<20, Row{Name: "configuration file", Per: "file", Reason: "the gateway does not start", Action: "-"})
	LogFile    = size(64<<20, Row{Name: "log file before it is rotated", Per: "file", Reason: "-", Action: "-"})
	LogFiles   = count(4, Row{Name: "log files", Per: "gateway", Reason: "the oldest is deleted", Action: "-"})
	LogValue   = count(4096, Row{Name: "bytes of a value in the log", Per: "value", Reason: "-", Action: "-"})
	LogCauses  = count(1000, Row{Name: "refusals of different clients that are logged separately", Per: "minute", Reason: "one line for all others", Action: "-"})
	PeerName   = count(1024, Row{Name: "bytes of the name of a refused client", Per: "connection", Reason: "the end is dropped", Action: "-"})
)
