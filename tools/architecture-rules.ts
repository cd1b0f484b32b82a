// Who may import whom: the two tables of STYLE.md A as data.

/** A package or an area, and what it may import besides itself. "*": everything. */
export type ImportTable = Readonly<Record<string, readonly string[] | "*">>;

/**
 * Packages and the folders above them. `control`, `edge` and `worker` meet only over `contracts`; the command line
 * imports them to start them, and `tests/host` to drive the edge's host classes against the kernel.
 */
export const packageTable: ImportTable = {
  contracts: [],
  kit: ["contracts"],
  sdk: ["contracts"],
  cli: ["sdk", "contracts", "kit", "control", "edge", "worker", "tools"],
  console: ["sdk", "contracts"],
  e2b: ["sdk", "contracts", "kit"],
  mcp: ["sdk", "contracts", "kit"],
  control: ["kit", "contracts"],
  edge: ["kit", "contracts"],
  worker: ["kit", "sdk", "contracts"],
  testkit: ["contracts", "kit", "sdk", "cli", "control", "edge", "worker", "tools"],
  tests: ["testkit", "sdk", "contracts", "cli", "tools"],
  "tests/host": ["testkit", "sdk", "contracts", "cli", "edge", "kit", "tools", "bench"],
  bench: ["testkit", "sdk", "contracts"],
  tools: ["contracts", "tests"],
};

/** Areas inside a package: the first folder under `src`, or the file's name at its top. Any may import `config`. */
export const areaTables: Readonly<Record<string, ImportTable>> = {
  control: {
    main: "*",
    start: "*",
    index: "*",
    config: [],
    api: ["app", "iam", "nodes", "watcher"],
    app: ["iam", "placement", "store", "nodes", "watcher"],
    nodes: ["iam", "watcher"],
    watcher: ["placement", "store"],
    iam: ["store"],
    placement: [],
    store: [],
    testing: "*",
  },
  edge: {
    main: "*",
    start: "*",
    index: "*",
    config: [],
    "control-link": [],
    api: ["sandbox", "trajectory"],
    sandbox: ["backends", "layers", "network", "density", "trajectory", "ledger", "chronus"],
    backends: ["layers", "network", "chronus", "host"],
    layers: ["host"],
    network: ["host"],
    density: ["host"],
    chronus: ["host"],
    ledger: ["host/files"],
    trajectory: ["host/files"],
    host: [],
  },
};
