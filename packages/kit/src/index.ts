export { ClaimSigner, ClaimVerifier } from "./claims.ts";
export { loadConfig, parse, parseJson, parseJsonWithDefaults } from "./config.ts";
export { digestOf } from "./digest.ts";
export {
  addRoute,
  asPlatformError,
  createHttpServer,
  errorBody,
  type HttpServerOptions,
  type RouteSchemas,
} from "./http-server.ts";
export { Background, untilToldToEnd, wait } from "./lifetime.ts";
export { createLog, type Log, silentLog } from "./log.ts";
export { writeLine } from "./ndjson.ts";
export { parseQuery } from "./query.ts";
export { backoffMs, type RetryOptions, retry } from "./retry.ts";
export { createAuthority, createRequest, fingerprint, type KeyPair, signRequest } from "./tls.ts";
