import { PlatformError, WireErrorBody } from "@dsec/contracts";
import { parseJson } from "@dsec/kit";
import { Agent, request } from "undici";

export interface ClusterIdentity {
  /** PEM. */
  readonly authority: string;
  /** Absent before the first join. */
  readonly privateKey?: string;
  readonly certificate?: string;
}

const serverName = "control-server";

/** Calls to the cluster listener of control instances; accepts only servers that the authority vouches for. */
export class ClusterClient implements AsyncDisposable {
  readonly #agent: Agent;

  constructor(identity: ClusterIdentity) {
    this.#agent = new Agent({
      connect: {
        ca: identity.authority,
        ...(identity.privateKey === undefined ? {} : { key: identity.privateKey }),
        ...(identity.certificate === undefined ? {} : { cert: identity.certificate }),
        checkServerIdentity: (_host, certificate) =>
          certificate.subject.CN === serverName
            ? undefined
            : new Error("the server is not a control instance"),
      },
    });
  }

  /** The JSON answer. An error of control is thrown as the platform's error it is. */
  async post(url: string, body: unknown, signal: AbortSignal): Promise<unknown> {
    const answer = await request(url, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify(body),
      dispatcher: this.#agent,
      signal,
    });
    const text = await answer.body.text();
    if (answer.statusCode < 400) return JSON.parse(text) as unknown;
    const error = parseJson(WireErrorBody, text, "error of control");
    throw new PlatformError(
      error.code,
      error.message,
      error.retryAfterMs === undefined ? {} : { retryAfterMs: error.retryAfterMs },
    );
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#agent.destroy();
  }
}
