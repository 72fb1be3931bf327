// The messages of the API: proto/muster/v1 in protobuf's JSON mapping, as the gateway writes it. Any field may
// be missing or null; 64-bit numbers are strings.

export type Timestamp = string;
export type Duration = string; // "42.5s"

export interface WireCounts {
  planned?: string | number;
  pending?: string | number;
  genuine?: string | number;
  errors?: string | number;
  timedOut?: string | number;
}

export interface WireRun {
  id?: string;
  title?: string;
  state?: string;
  stateReason?: string;
  createTime?: Timestamp | null;
  deadline?: Timestamp | null;
  endTime?: Timestamp | null;
  createdBy?: string;
  counts?: WireCounts | null;
  damagedResults?: string | number;
  pinned?: boolean;
}

export interface WireReasonCount {
  reason?: string;
  count?: string | number;
}

export interface WireEstimate {
  earliest?: Timestamp | null;
  latest?: Timestamp | null;
}

export interface WirePlugin {
  plugin?: string;
  counts?: WireCounts | null;
  percentComplete?: number;
  reasons?: WireReasonCount[] | null;
  estimate?: WireEstimate | null;
  once?: boolean;
}

export interface WireStatus {
  run?: string;
  title?: string;
  state?: string;
  stateReason?: string;
  percentComplete?: number;
  createTime?: Timestamp | null;
  deadline?: Timestamp | null;
  endTime?: Timestamp | null;
  plugins?: WirePlugin[] | null;
  feedTime?: Timestamp | null;
  counts?: WireCounts | null;
  reasons?: WireReasonCount[] | null;
  estimate?: WireEstimate | null;
  stragglers?: WirePair[] | null;
  doubt?: string;
  time?: Timestamp | null;
  damagedResults?: string | number;
}

export interface WireProgress {
  message?: string;
  total?: string | number;
  completed?: string | number;
  failures?: string[] | null;
  errors?: string[] | null;
  omittedFailures?: string | number;
  omittedErrors?: string | number;
  time?: Timestamp | null;
}

export interface WireFault {
  check?: string;
  address?: string;
  message?: string;
  nextStep?: string;
}

export interface WirePair {
  plugin?: string;
  node?: string;
  outcome?: string;
  error?: string;
  size?: string | number;
  updateTime?: Timestamp | null;
  progress?: WireProgress | null;
  presence?: string;
  reason?: string;
  reasonSince?: Timestamp | null;
  detail?: string;
  next?: string;
  heartbeatAge?: Duration | null;
  phase?: string;
  fault?: WireFault | null;
  run?: string;
}

export interface WireWatch {
  cursor?: string;
  reset?: boolean;
  status?: WireStatus | null;
  pairs?: WirePair[] | null;
}

export interface WireEvent {
  time?: Timestamp | null;
  presence?: string;
  reason?: string;
  run?: string;
  plugin?: string;
  detail?: string;
}

export interface WireNode {
  node?: string;
  presence?: string;
  presenceSince?: Timestamp | null;
  lastHeartbeat?: Timestamp | null;
  clockSkew?: Duration | null;
  duplicateAgent?: boolean;
  pairs?: WirePair[] | null;
  events?: WireEvent[] | null;
}

export interface WireArchive {
  size?: string | number;
  sha256?: string;
  fileName?: string;
}

export interface WireEnrolled {
  name?: string;
  joinTime?: Timestamp | null;
  revoked?: boolean;
  isRelay?: boolean;
}

export interface WireAdapter {
  name?: string;
  version?: string;
  problem?: string;
  versionTime?: Timestamp | null;
}

export interface WireAttached {
  children?: WireChild[] | null;
  nextPageToken?: string;
}

export interface WireChild {
  name?: string;
  relay?: string;
  attached?: boolean;
  changeTime?: Timestamp | null;
  descendants?: string | number;
  duplicateAgentTime?: Timestamp | null;
  link?: string;
  info?: WireNodeInfo | null;
}

export interface WireNodeInfo {
  version?: string;
  adapters?: WireAdapter[] | null;
  freeBytes?: string | number;
  totalBytes?: string | number;
  time?: Timestamp | null;
}

export interface WireDocument {
  name?: string;
  version?: string;
  description?: string;
  type?: string;
  image?: string;
  adHoc?: boolean;
  source?: WireSource | null;
  document?: string;
  documentSha256?: string;
  createdBy?: string;
  createTime?: Timestamp | null;
}

export interface WireSource {
  kind?: string;
  sha256?: string; // hex
  url?: string;
  commit?: string;
  folder?: string;
}

export interface WireDocuments {
  types?: WireDocument[] | null;
  templates?: WireDocument[] | null;
  nextPageToken?: string;
}

export interface WireParameter {
  name?: string;
  value?: string;
  source?: string;
  sensitive?: boolean;
}

export interface WireFile {
  path?: string;
  size?: string | number;
  sha256?: string; // base64
  executable?: boolean;
}

export interface WireFinal {
  outcome?: string;
  exitCode?: number;
  signal?: number;
  duration?: Duration | null;
  reason?: string;
  detail?: string;
  recordsVerified?: boolean;
}

export interface WireOutputs {
  outputs?: { name?: string; value?: string }[] | null;
}

export interface WireWorkspaceReference {
  workspace?: string;
  version?: string | number;
  sha256?: string; // base64
  size?: string | number;
}

export interface WireDeploymentNode {
  node?: string;
  startTime?: Timestamp | null;
  final?: WireFinal | null;
  outputs?: WireOutputs | null;
  earlier?: WireFinal | null;
  retriedBy?: string;
  destroyedBy?: string;
  workspace?: WireWorkspaceReference | null;
  workspaceRefusedTime?: Timestamp | null;
}

export interface WireDifference {
  probe?: string;
  baselineStatus?: string;
  status?: string;
  measured?: string;
  text?: string;
}

export interface WireConformance {
  deployment?: string;
  type?: string;
  reportTime?: Timestamp | null;
  status?: string;
  report?: string; // JSON
  state?: string;
  differences?: WireDifference[] | null;
}

export interface WireRelated {
  deployment?: string;
  state?: string;
}

export interface WireWorkspaceVersion {
  version?: string | number;
  sha256?: string; // base64
  size?: string | number;
  deployment?: string;
  node?: string;
  createTime?: Timestamp | null;
  omitted?: string | number;
  restoredFrom?: string | number;
  restoredBy?: string;
}

export interface WireWorkspace {
  workspace?: string;
  state?: string;
  latest?: string | number;
  deployment?: string;
  node?: string;
  since?: Timestamp | null;
  problem?: string;
  versions?: WireWorkspaceVersion[] | null;
  size?: string | number;
}

export interface WireWorkspaces {
  workspaces?: WireWorkspace[] | null;
  nextPageToken?: string;
}

export interface WireDeployment {
  deployment?: string;
  job?: string;
  type?: string;
  template?: string;
  action?: string;
  image?: string;
  state?: string;
  problem?: string;
  createdBy?: string;
  createTime?: Timestamp | null;
  endTime?: Timestamp | null;
  lateTime?: Timestamp | null;
  targets?: string | number;
  succeeded?: string | number;
  cancelRequestedBy?: string;
  workspace?: WireWorkspaceReference | null;
  workspaceDeletion?: { deletedBy?: string; deleteTime?: Timestamp | null } | null;
  secrets?: { name?: string; secret?: string; version?: string | number }[] | null;
  skipConformance?: boolean;
  forced?: boolean;
  neverSent?: boolean;
  build?: { repository?: string; source?: WireSource | null; image?: string } | null;
  retryOf?: string;
  destroys?: string;
  retries?: WireRelated[] | null;
  destroyedBy?: WireRelated[] | null;
  parameters?: WireParameter[] | null;
  files?: WireFile[] | null;
  nodes?: WireDeploymentNode[] | null;
  nextPageToken?: string;
}

export interface WireJob {
  state?: string;
  targets?: string | number;
  running?: string | number;
  succeeded?: string | number;
  outcomes?: { outcome?: string; count?: string | number }[] | null;
  outputBytes?: string | number;
}

export interface WireRecord {
  node?: string;
  sequence?: string | number;
  output?: { stream?: string; data?: string } | null; // base64
  cut?: { bytes?: string | number } | null;
  final?: WireFinal | null;
  branch?: { relay?: string; lost?: boolean; detail?: string } | null;
}

export interface WireJobWatch {
  records?: WireRecord[] | null;
  position?: string | number;
  job?: WireJob | null;
  complete?: boolean;
}
