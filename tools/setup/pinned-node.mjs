// The Node.js that the project pins, and how the set-up, which runs on the host's own, turns into a program on it.
import { spawn } from "node:child_process";
import { join } from "node:path";
import { root } from "./progress.mjs";

/** The pinned Node.js; there once npm packages are installed. */
export const pinnedNode = join(root, "node_modules/node/bin/node");

/** The entry of the `dsec` command. */
export const dsecMain = join(root, "packages/cli/src/main.ts");

/**
 * Becomes `dsec …args` where this Node.js can replace itself, else starts it, passes signals on and ends as it ends.
 * @param {readonly string[]} args
 */
export function becomeDsec(args) {
  const argv = [dsecMain, ...args];
  const { execve } =
    /** @type {{ execve?: (file: string, argv: string[], env: NodeJS.ProcessEnv) => never }} */ (process);
  if (execve !== undefined) return execve.call(process, pinnedNode, [pinnedNode, ...argv], process.env);
  const child = spawn(pinnedNode, argv, { stdio: "inherit" });
  const signals = /** @type {const} */ (["SIGINT", "SIGTERM", "SIGHUP"]);
  for (const signal of signals) {
    process.on(signal, () => {
      // A terminal sends Ctrl-C to the whole group, the child included.
      if (signal !== "SIGINT" || process.stdin.isTTY !== true) child.kill(signal);
    });
  }
  child.on("exit", (code, signal) => {
    if (signal === null) process.exit(code ?? 1);
    for (const name of signals) process.removeAllListeners(name);
    process.kill(process.pid, signal);
  });
}
