import { type DestinationStream, destination, type Logger, pino, stdSerializers } from "pino";

export type Log = Logger;

/** JSON lines on stderr, or appended to `file`. Event names are constant, values are fields; causes are kept whole. */
export function createLog(
  name: string,
  options: { readonly level?: string; readonly file?: string } = {},
): Log {
  const stream: DestinationStream = destination({ dest: options.file ?? 2, sync: false, mkdir: true });
  return pino(
    {
      name,
      level: options.level ?? "info",
      base: { name, pid: process.pid },
      serializers: { err: stdSerializers.errWithCause, error: stdSerializers.errWithCause },
    },
    stream,
  );
}

/** Writes nothing: for tests and for libraries that were given no log. */
export function silentLog(): Log {
  return pino({ level: "silent" });
}
