/** Bounds that both ends of a border must agree on. Units last. */
export const limits = {
  /** Sandboxes of one batch call: the largest burst of one training job. */
  batchSandboxesMax: 32_000,
  toolkitsMax: 98,
  labelsMax: 32,
  labelLengthMax: 128,
  environmentVariablesMax: 512,
  argumentsMax: 4_096,
  /** argv and environment of a command together. */
  commandBytesMax: 2 * 1024 * 1024,
  /** Input of a command, given with its start. */
  stdinBytesMax: 1024 * 1024,
  /** JSON body of any call but file content. */
  bodyBytesMax: 4 * 1024 * 1024,
  pathLengthMax: 4_096,
  listPageMax: 1_000,
  fileListEntriesMax: 100_000,
  /** Output that `exec` returns inline, for each of stdout and stderr. */
  inlineOutputBytesMax: 16 * 1024 * 1024,
  inlineOutputBytesDefault: 1024 * 1024,
  idempotencyKeyLengthMax: 128,
  /** How long an idempotency key is remembered. */
  idempotencyMs: 24 * 60 * 60 * 1000,
  commandTimeoutMsDefault: 600_000,
  commandTimeoutMsMax: 7 * 24 * 60 * 60 * 1000,
  idleTimeoutMsDefault: 900_000,
  lifetimeMsMax: 30 * 24 * 60 * 60 * 1000,
  cpuCoresMax: 256,
  memoryMibMin: 16,
  memoryMibMax: 1024 * 1024,
  diskMibMax: 1024 * 1024,
  pidsMax: 32_768,
  /** Output subscriptions of one event stream. */
  subscriptionsMax: 4_096,
  /** How often each end of an event stream that has nothing to say says so. */
  streamKeepAliveMs: 20_000,
  /** How often an edge reports, and after how many silent periods it is suspect and lost. */
  heartbeatPeriodMs: 1_000,
  suspectAfterPeriods: 3,
  lostAfterPeriods: 10,
} as const;
