// Runs one long command of the set-up and shows, on stderr alone, that it is alive: stdout belongs to results.
import { spawn } from "node:child_process";
import { closeSync, mkdirSync, openSync, readFileSync, writeSync } from "node:fs";
import { dirname, join } from "node:path";

/** Absolute path of the repository's root. */
export const root = join(import.meta.dirname, "../..");

/** Absolute path of the log with the full output of every command of the set-up. */
const setupLog = join(root, ".dsec/setup.log");

const endingSignals = /** @type {const} */ (["SIGINT", "SIGTERM", "SIGHUP"]);
const quietMs = 2000;
const lineEveryMs = 10_000;

/** A step of the set-up did not work. The message says what to do next; nothing else need be shown. */
export class SetupError extends Error {}

/** @param {string} line */
export const say = (line) => void process.stderr.write(`${line}\n`);

/**
 * Runs a command to its end with its output in the log. Rejects with a SetupError that holds the end of its output.
 * @param {string} title what is being done, as "Installing npm packages"
 * @param {readonly string[]} argv
 * @param {NodeJS.ProcessEnv} [env] replaces the environment
 * @returns {Promise<void>}
 */
export async function runStep(title, argv, env = process.env) {
  mkdirSync(dirname(setupLog), { recursive: true });
  const log = openSync(setupLog, "a+");
  const startOffset = readFileSync(setupLog).length;
  writeSync(log, `\n$ ${argv.join(" ")}\n`);
  const clock = showElapsed(title);
  try {
    const ended = await runToLog(argv, env, log);
    if (ended !== "exit code 0") {
      const output = readFileSync(setupLog).subarray(startOffset).toString().trimEnd().split("\n").slice(-20);
      throw new SetupError(
        `${title}: ${ended}\n  ${output.join("\n  ")}\nThe whole output is in ${setupLog}`,
      );
    }
  } finally {
    clock.stop();
    closeSync(log);
  }
}

/**
 * A signal that ends the set-up ends the command first: no package manager is left running.
 * @param {readonly string[]} argv
 * @param {NodeJS.ProcessEnv} env
 * @param {number} log descriptor that takes both outputs
 * @returns {Promise<string>} how it ended
 */
function runToLog(argv, env, log) {
  const [program = "", ...args] = argv;
  const child = spawn(program, args, { cwd: root, env, stdio: ["ignore", log, log] });
  const passOn = (/** @type {NodeJS.Signals} */ signal) => void child.kill(signal);
  for (const signal of endingSignals) process.on(signal, passOn);
  /** @type {Promise<string>} */
  const ended = new Promise((resolve) => {
    child.on("error", (error) => resolve(error.message));
    child.on("exit", (code, signal) => resolve(signal === null ? `exit code ${code}` : `ended by ${signal}`));
  });
  return ended.finally(() => {
    for (const signal of endingSignals) process.off(signal, passOn);
  });
}

/**
 * Nothing for two seconds; then the title and the elapsed seconds: every second on a terminal, else a line every ten.
 * @param {string} title
 */
function showElapsed(title) {
  const startMs = Date.now();
  const isTerminal = process.stderr.isTTY === true;
  let shown = false;
  const show = () => {
    shown = true;
    const text = `${title} … ${Math.round((Date.now() - startMs) / 1000)} s`;
    process.stderr.write(isTerminal ? `\r${text}` : `${text}\n`);
  };
  /** @type {NodeJS.Timeout | undefined} */
  let repeat;
  const first = setTimeout(() => {
    show();
    repeat = setInterval(show, isTerminal ? 1000 : lineEveryMs);
  }, quietMs);
  return {
    stop: () => {
      clearTimeout(first);
      clearInterval(repeat);
      if (!shown) return;
      const seconds = Math.round((Date.now() - startMs) / 1000);
      process.stderr.write(`${isTerminal ? "\r" : ""}${title}: ended after ${seconds} s\n`);
    },
  };
}
