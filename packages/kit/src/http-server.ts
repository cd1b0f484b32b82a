import { randomBytes } from "node:crypto";
import {
  causeOfError,
  type ErrorCode,
  errorStatuses,
  failureOf,
  headers,
  httpStatusOf,
  limits,
  PlatformError,
  type Route,
  type WireErrorBody,
} from "@dsec/contracts";
import {
  type FastifyError,
  type FastifyInstance,
  type FastifyReply,
  type FastifyRequest,
  fastify,
  type RouteHandlerMethod,
} from "fastify";
import type { TSchema } from "typebox";
import type { Log } from "./log.ts";

export interface HttpServerOptions {
  readonly log: Log;
  /** PEM. With `authority`, clients show a certificate of it; `optional` lets others in too, and the handler looks at the peer. */
  readonly tls?: {
    readonly key: string;
    readonly cert: string;
    readonly authority?: string;
    readonly clients?: "required" | "optional";
  };
}

export interface RouteSchemas {
  readonly body?: TSchema;
  readonly query?: TSchema;
  readonly params?: TSchema;
  readonly summary?: string;
}

declare module "fastify" {
  interface FastifyContextConfig {
    /** Who may call, for a hook that authenticates before any body is read. */
    readonly auth?: Route["auth"];
    readonly summary?: string | undefined;
  }
}

const keepAliveTimeoutMs = 75_000;
const requestIdPattern = /^[A-Za-z0-9._-]{1,64}$/;

/**
 * A Fastify instance as all daemons use it: strict validation (unknown keys refused, nothing coerced but query strings),
 * request ids, the one error shape, bounded bodies. The caller listens and closes.
 */
export function createHttpServer(options: HttpServerOptions): FastifyInstance {
  const app = fastify({
    logger: false,
    bodyLimit: limits.bodyBytesMax,
    keepAliveTimeout: keepAliveTimeoutMs,
    forceCloseConnections: true,
    routerOptions: { maxParamLength: 256 },
    genReqId: requestIdOf,
    ajv: {
      customOptions: { removeAdditional: false, useDefaults: true, coerceTypes: false, allErrors: false },
    },
    ...(options.tls === undefined ? {} : { https: tlsOptions(options.tls) }),
  }) as unknown as FastifyInstance;
  app.setErrorHandler((error: FastifyError, request, reply) => {
    const known = asPlatformError(error);
    if (known.code === "internal") {
      options.log.error(
        { err: error, requestId: request.id, method: request.method, route: request.routeOptions.url },
        "request failed",
      );
    }
    sendError(request, reply, known);
  });
  app.setNotFoundHandler((request, reply) => {
    sendError(request, reply, new PlatformError("not_found", "Cannot find this route"));
  });
  app.addHook("onRequest", (request, reply, done) => {
    reply.header(headers.requestId, request.id);
    done();
  });
  return app;
}

/** Registers a handler for a route of the contracts. Colons inside a path segment (`sandboxes:batch`) are literal. */
export function addRoute(
  app: FastifyInstance,
  route: Route,
  schemas: RouteSchemas,
  handler: RouteHandlerMethod,
): void {
  app.route({
    method: route.method,
    url: route.path.replaceAll(/([a-z]):([a-z])/g, "$1::$2"),
    schema: {
      ...(schemas.body === undefined ? {} : { body: schemas.body }),
      ...(schemas.query === undefined ? {} : { querystring: schemas.query }),
      ...(schemas.params === undefined ? {} : { params: schemas.params }),
    },
    config: { auth: route.auth, summary: schemas.summary },
    handler,
  });
}

/** The wire form of an error. Causes stay inside. */
export function errorBody(error: PlatformError, requestId: string): WireErrorBody {
  return {
    code: error.code,
    message: error.message,
    ...(error.details === undefined ? {} : { details: { ...error.details } }),
    ...(error.retryAfterMs === undefined ? {} : { retryAfterMs: error.retryAfterMs }),
    requestId,
    failure: failureOf(causeOfError(error.code)),
  };
}

/** Any error as one of the platform's: those of the HTTP layer keep their meaning, unknown ones are `internal`. */
export function asPlatformError(error: unknown): PlatformError {
  if (error instanceof PlatformError) return error;
  const { statusCode, message, validation } = error as Partial<FastifyError>;
  if (validation !== undefined)
    return new PlatformError("invalid_request", `Wrong request: ${message}`, { cause: error });
  const code = statusCode === undefined ? "internal" : codeOfStatus(statusCode);
  if (code === "internal")
    return new PlatformError("internal", "The platform failed; the request id finds the cause in its log", {
      cause: error,
    });
  return new PlatformError(code, `Wrong request: ${message}`, { cause: error });
}

function codeOfStatus(status: number): ErrorCode {
  if (status === errorStatuses.payload_too_large) return "payload_too_large";
  if (status === errorStatuses.method_not_allowed) return "method_not_allowed";
  return status >= 400 && status < 500 ? "invalid_request" : "internal";
}

function sendError(request: FastifyRequest, reply: FastifyReply, error: PlatformError): void {
  reply.code(httpStatusOf(error.code));
  if (error.retryAfterMs !== undefined) reply.header("retry-after", Math.ceil(error.retryAfterMs / 1000));
  reply.type("application/json").send(JSON.stringify(errorBody(error, request.id)));
}

function requestIdOf(request: {
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
}): string {
  const given = request.headers[headers.requestId];
  return typeof given === "string" && requestIdPattern.test(given)
    ? given
    : randomBytes(12).toString("base64url");
}

function tlsOptions(tls: NonNullable<HttpServerOptions["tls"]>): object {
  const shared = { key: tls.key, cert: tls.cert, minVersion: "TLSv1.3" } as const;
  return tls.authority === undefined
    ? shared
    : { ...shared, ca: tls.authority, requestCert: true, rejectUnauthorized: tls.clients !== "optional" };
}
