import { join } from "node:path";

/** Directories and ports of one platform on this machine. */
export interface Places {
  /** Sockets, state of processes, nothing that outlives a reboot. */
  readonly runDir: string;
  /** What control and edges keep. */
  readonly dataDir: string;
  /** The layer store; may be shared by several platforms. */
  readonly layersDir: string;
  /** 0 takes a free one. */
  readonly apiPort: number;
  readonly clusterPort: number;
}

/** The platform that commands find by themselves; DSEC_RUN_DIR and DSEC_DATA_DIR move it. */
export function standardPlaces(): Places {
  const dataDir = process.env["DSEC_DATA_DIR"] ?? "/var/lib/dsec";
  return {
    runDir: process.env["DSEC_RUN_DIR"] ?? "/run/dsec",
    dataDir,
    layersDir: process.env["DSEC_LAYERS_DIR"] ?? join(dataDir, "layers"),
    apiPort: 7070,
    clusterPort: 7071,
  };
}

/** Files of a platform below its run directory. */
export function filesOf(
  runDir: string,
): Readonly<Record<"up" | "leaksBefore" | "controlLog" | "controlConfig", string>> {
  return {
    up: join(runDir, "up.json"),
    leaksBefore: join(runDir, "leaks-before.json"),
    controlLog: join(runDir, "control.log"),
    controlConfig: join(runDir, "control.json"),
  };
}
