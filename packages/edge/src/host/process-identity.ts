import { readFileSync } from "node:fs";
import { wait } from "@dsec/kit";

/**
 * A pid alone is reused by the kernel; with its start time (field 22 of /proc/<pid>/stat, clock ticks since boot) it names one
 * process for good. Undefined when there is no such process, or only its zombie is left.
 */
export function startTimeOf(pid: number): number | undefined {
  let stat: string;
  try {
    stat = readFileSync(`/proc/${pid}/stat`, "latin1");
  } catch {
    // No such process.
    return undefined;
  }
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  if (fields[0] === "Z" || fields[0] === "X") return undefined;
  return Number(fields[19]);
}

export function isSame(pid: number, startTime: number): boolean {
  return startTimeOf(pid) === startTime;
}

/** An init ends within milliseconds of its SIGKILL: look often at first, seldom when it takes longer. */
const eagerPolls = 20;
const eagerPollMs = 1;
const pollMsMax = 50;

/**
 * Resolves when the process is gone. Only its parent is told of an end, and after a restart that is not us: so this looks at /proc,
 * each millisecond at first, then at growing intervals of up to 50 ms.
 */
export async function whenGone(pid: number, startTime: number, signal: AbortSignal): Promise<void> {
  for (let polls = 1; isSame(pid, startTime); polls += 1) {
    await wait(polls <= eagerPolls ? eagerPollMs : Math.min(polls - eagerPolls, pollMsMax), signal);
    signal.throwIfAborted();
  }
}
