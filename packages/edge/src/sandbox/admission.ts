import { PlatformError } from "@dsec/contracts";
import type { HostLoad } from "../host/load.ts";

export interface AdmissionLimits {
  readonly sandboxesMax: number;
  readonly creationsMax: number;
  readonly memoryReserveMib: number;
  readonly diskReserveMib: number;
  /** PSI "some avg10" of memory, percent. */
  readonly memoryPressureMax: number;
}

export interface Occupancy {
  /** Living sandboxes, those being created included. */
  readonly sandboxes: number;
  readonly creating: number;
}

/** What a sandbox that is being created may still take before it shows in MemAvailable. */
const memoryOfCreationMib = 4;
const retryWhenBusyMs = 250;
const retryWhenFullMs = 2_000;

/**
 * Whether one more sandbox has room: undefined, or `no_capacity`. Requested memory is a limit, not a reservation: what counts is what
 * the node has left.
 */
export function refuseCreation(
  occupancy: Occupancy,
  load: HostLoad,
  limits: AdmissionLimits,
): PlatformError | undefined {
  if (occupancy.creating >= limits.creationsMax)
    return refusal("too many creations at once", retryWhenBusyMs);
  if (occupancy.sandboxes >= limits.sandboxesMax) {
    return refusal(`it has its ${limits.sandboxesMax} sandboxes`, retryWhenFullMs);
  }
  const freeMib = load.memoryAvailableMib - memoryOfCreationMib * (occupancy.creating + 1);
  if (freeMib < limits.memoryReserveMib) return refusal("it has no free memory", retryWhenFullMs);
  if (load.memoryPressure > limits.memoryPressureMax)
    return refusal("its memory is under pressure", retryWhenFullMs);
  if (load.diskFreeMib < limits.diskReserveMib) return refusal("its disk is full", retryWhenFullMs);
  return undefined;
}

function refusal(reason: string, retryAfterMs: number): PlatformError {
  return new PlatformError("no_capacity", `The node takes no more sandboxes: ${reason}`, { retryAfterMs });
}

const loadKeptMs = 250;

/** The node's load, measured at most four times a second however many ask. */
export class LoadMonitor {
  readonly #read: () => HostLoad;
  #load: HostLoad | undefined;
  #readAtMs = 0;

  constructor(read: () => HostLoad) {
    this.#read = read;
  }

  get current(): HostLoad {
    const nowMs = performance.now();
    if (this.#load === undefined || nowMs - this.#readAtMs > loadKeptMs) {
      this.#load = this.#read();
      this.#readAtMs = nowMs;
    }
    return this.#load;
  }
}
