import type { IncomingHttpHeaders } from "node:http";
import type { Readable } from "node:stream";
import { claimHeader, headers, PlatformError, randomBase32, routes, WireErrorBody } from "@dsec/contracts";
import { type ClaimSigner, parseJson } from "@dsec/kit";
import { type Dispatcher, errors, Pool } from "undici";
import { WebSocket } from "ws";
import { claimOf, type Principal } from "../iam/decide.ts";

/** PEM texts with which control shows itself to edges, and the authority that it trusts. */
export interface ClientIdentity {
  readonly key: string;
  readonly certificate: string;
  readonly authority: string;
}

export interface EdgeCall {
  readonly method: Dispatcher.HttpMethod;
  /** Path with query. */
  readonly path: string;
  readonly principal: Principal;
  readonly requestId: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string | Buffer | Readable | null;
  readonly signal: AbortSignal;
}

export interface EdgeAnswer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  /** The caller reads it to its end, or destroys it. */
  readonly body: Readable & { text(): Promise<string> };
}

/** The connection failed before the edge can have seen the request. */
export class EdgeUnreachable extends Error {
  override readonly name = "EdgeUnreachable";
}

const connectionsMax = 256;
const connectTimeoutMs = 2_000;
/** One output message of the event stream, or the end of a command. */
const eventBytesMax = 128 * 1024;

/** Where an edge serves: `url` over mutual TLS, or `socketPath` when it is on this machine. */
export interface EdgeAddress {
  readonly nodeId: string;
  readonly url: string;
  readonly socketPath?: string;
}

/** One edge, over mutual TLS or its local socket, with a pool of kept connections. */
export class EdgeClient implements AsyncDisposable {
  readonly #pool: Pool;
  readonly #address: EdgeAddress;
  readonly #tls: ReturnType<typeof tlsOptions>;
  readonly #signer: ClaimSigner;

  constructor(address: EdgeAddress, identity: ClientIdentity, signer: ClaimSigner) {
    const { nodeId, url, socketPath } = address;
    this.#signer = signer;
    this.#address = address;
    this.#tls = tlsOptions(nodeId, identity);
    this.#pool = new Pool(socketPath === undefined ? url : "http://edge", {
      connections: connectionsMax,
      pipelining: 1,
      headersTimeout: 0,
      bodyTimeout: 0,
      connect: {
        ...(socketPath === undefined ? this.#tls : { socketPath }),
        timeout: connectTimeoutMs,
      },
    });
  }

  /** Sends a call. Rejects with EdgeUnreachable when the edge cannot have seen it, else with what broke. */
  async call(call: EdgeCall): Promise<EdgeAnswer> {
    try {
      const answer = await this.#pool.request({
        method: call.method,
        path: call.path,
        headers: {
          ...call.headers,
          [claimHeader]: this.#signer.header(claimOf(call.principal)),
          [headers.requestId]: call.requestId,
        },
        body: call.body ?? null,
        signal: call.signal,
      });
      return { status: answer.statusCode, headers: answer.headers, body: answer.body };
    } catch (cause) {
      if (cause instanceof errors.ConnectTimeoutError || isRefused(cause)) {
        throw new EdgeUnreachable("the edge does not accept connections", { cause });
      }
      throw cause;
    }
  }

  /** A call with a JSON answer. An error of the edge is thrown as the platform's error it is. */
  async json(
    call: Omit<EdgeCall, "body" | "headers"> & {
      readonly json?: unknown;
      readonly headers?: Record<string, string>;
    },
  ): Promise<unknown> {
    const { json, ...rest } = call;
    const answer = await this.call({
      ...rest,
      body: json === undefined ? null : JSON.stringify(json),
      headers: { ...call.headers, ...(json === undefined ? {} : { "content-type": "application/json" }) },
    });
    const text = await answer.body.text();
    if (answer.status >= 400) throw errorOf(text);
    return text === "" ? undefined : (JSON.parse(text) as unknown);
  }

  /** A connection of the edge's event stream, as this principal. The caller ends it. */
  openEventStream(principal: Principal): WebSocket {
    const { url, socketPath } = this.#address;
    const server = socketPath === undefined ? url.replace(/^http/, "ws") : `ws+unix:${socketPath}:`;
    return new WebSocket(`${server}${routes.eventStream.path}`, {
      ...this.#tls,
      headers: {
        [claimHeader]: this.#signer.header(claimOf(principal)),
        [headers.requestId]: randomBase32(16),
      },
      handshakeTimeout: connectTimeoutMs,
      maxPayload: eventBytesMax,
      perMessageDeflate: false,
    });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#pool.destroy();
  }
}

/** TLS settings that accept only the edge of this node, whatever its address. */
function tlsOptions(nodeId: string, identity: ClientIdentity) {
  return {
    key: identity.key,
    cert: identity.certificate,
    ca: identity.authority,
    checkServerIdentity: (_host: string, certificate: { readonly subject: { readonly CN?: unknown } }) =>
      certificate.subject.CN === `edge-${nodeId}`
        ? undefined
        : new Error(`the edge is not the one of node ${nodeId}`),
  };
}

function errorOf(text: string): PlatformError {
  const body = parseJson(WireErrorBody, text, "error of an edge");
  return new PlatformError(body.code, body.message, {
    ...(body.details === undefined ? {} : { details: body.details }),
    ...(body.retryAfterMs === undefined ? {} : { retryAfterMs: body.retryAfterMs }),
  });
}

function isRefused(error: unknown): boolean {
  const { code } = error as NodeJS.ErrnoException;
  return (
    code === "ECONNREFUSED" ||
    code === "EHOSTUNREACH" ||
    code === "ENETUNREACH" ||
    code === "EHOSTDOWN" ||
    code === "ENOENT"
  );
}
