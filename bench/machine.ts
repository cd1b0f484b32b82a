import { execFileSync } from "node:child_process";
import { availableParallelism, cpus, loadavg, release, totalmem } from "node:os";
import type { Machine } from "./result.ts";
import { round } from "./statistics.ts";

/** The facts that a number means nothing without. */
export function describeMachine(): Machine {
  return {
    cores: availableParallelism(),
    cpu: cpus()[0]?.model.trim() ?? "unknown",
    memoryMib: Math.round(totalmem() / 1024 ** 2),
    kernel: release(),
    node: process.versions.node,
    loadAtStart: round(loadavg()[0] ?? 0),
  };
}

/** The commit that is measured, shortened, with `+` when tracked files differ from it. */
export function revision(directory: string): string {
  const git = (...args: string[]): string =>
    execFileSync("git", args, {
      cwd: directory,
      encoding: "utf8",
      stdio: ["ignore", "pipe", "ignore"],
    }).trim();
  try {
    const changed = git("status", "--porcelain", "--untracked-files=no") !== "";
    return git("rev-parse", "--short=10", "HEAD") + (changed ? "+" : "");
  } catch {
    // Not a git working copy (an archive), or no git: the numbers still count.
    return "unknown";
  }
}
