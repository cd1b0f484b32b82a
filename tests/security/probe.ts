import assert from "node:assert/strict";
import type { Sandbox } from "@dsec/sdk";

/**
 * Makes system calls from inside as root and tells how each ended: an errno's name, or "allowed". A call is its number on x86_64
 * with its arguments; a text argument is passed as a pointer to it.
 */
export async function tryCalls<Name extends string>(
  sandbox: Sandbox,
  calls: Readonly<Record<Name, readonly (number | string)[]>>,
): Promise<Readonly<Record<Name, string>>> {
  const result = await sandbox.exec(["python3", "-c", caller], { stdin: JSON.stringify(calls) });
  assert.ok(result.ok, result.stderr);
  return JSON.parse(result.stdout) as Record<Name, string>;
}

/** Each call in a process of its own: one that is allowed must not change what the next one meets. */
const caller = `
import ctypes, errno, json, os, sys
libc = ctypes.CDLL(None, use_errno=True)
def attempt(arguments):
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        words = [ctypes.c_char_p(word.encode()) if isinstance(word, str) else ctypes.c_long(word) for word in arguments]
        answer = libc.syscall(*words)
        code = ctypes.get_errno()
        os.write(writer, (errno.errorcode.get(code, str(code)) if answer == -1 else "allowed").encode())
        os._exit(0)
    os.close(writer)
    text = os.read(reader, 64).decode()
    os.close(reader)
    _, status = os.waitpid(child, 0)
    return text or "ended with status %d" % status
print(json.dumps({name: attempt(arguments) for name, arguments in json.load(sys.stdin).items()}))
`;

/** Runs shell text as root and returns what it wrote; fails when it ends otherwise than with 0. */
export async function shell(sandbox: Sandbox, text: string): Promise<string> {
  const result = await sandbox.exec(["/bin/bash", "-c", text]);
  assert.ok(result.ok, `${text}: ${result.exitCode ?? result.outcome.cause} ${result.stderr}`);
  return result.stdout;
}
