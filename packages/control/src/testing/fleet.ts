import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { CreatedKey, JoinToken, Project } from "@dsec/contracts";
import { loadConfig } from "@dsec/kit";
import { ControlConfig } from "../config.ts";
import { type Control, startControl } from "../start.ts";
import { FakeEdge, type FakeEdgeOptions } from "./fake-edge.ts";

export interface Answer {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
  readonly body: Record<string, unknown>;
}

/** A control instance with edges that joined it, for tests. */
export class TestFleet implements AsyncDisposable {
  readonly control: Control;
  readonly adminKey: string;
  readonly #held: AsyncDisposableStack;
  readonly edges: FakeEdge[] = [];

  private constructor(control: Control, held: AsyncDisposableStack) {
    this.control = control;
    this.adminKey = control.bootstrapKey ?? "";
    this.#held = held;
  }

  static async start(edges: number, config: object = {}): Promise<TestFleet> {
    await using held = new AsyncDisposableStack();
    const dataDir = held.adopt(mkdtempSync(join(tmpdir(), "dsec-control-")), (path) =>
      rmSync(path, { recursive: true, force: true }),
    );
    const port = { host: "127.0.0.1", port: 0 };
    const overrides = { dataDir, listen: port, clusterListen: port, logLevel: "silent", ...config };
    const control = held.use(await startControl(loadConfig(ControlConfig, { overrides })));
    const fleet = new TestFleet(control, held.move());
    for (let count = 0; count < edges; count += 1) await fleet.addEdge();
    return fleet;
  }

  async addEdge(options: Partial<FakeEdgeOptions> = {}): Promise<FakeEdge> {
    const { body } = await this.call("POST", "/v1/join-tokens");
    const { token } = body as unknown as JoinToken;
    const edge = this.#held.use(
      await FakeEdge.join({ clusterUrl: this.control.clusterUrl, token, ...options }),
    );
    this.edges.push(edge);
    return edge;
  }

  /** The edge of a node. */
  edge(nodeId: unknown): FakeEdge {
    const edge = this.edges.find((one) => one.nodeId === nodeId);
    if (edge === undefined) throw new Error(`there is no edge of ${String(nodeId)}`);
    return edge;
  }

  /** A member key of a new project. */
  async memberKey(project: string): Promise<string> {
    const created = (await this.call("POST", "/v1/projects", { json: { name: project } }))
      .body as unknown as Project;
    const key = await this.call("POST", "/v1/keys", { json: { project: created.id, name: "tests" } });
    return (key.body as unknown as CreatedKey).secret;
  }

  /** Calls the API, as the admin unless `key` says otherwise. */
  async call(
    method: string,
    path: string,
    options: {
      readonly json?: unknown;
      readonly key?: string | null;
      readonly headers?: Record<string, string>;
    } = {},
  ): Promise<Answer> {
    const { json, key = this.adminKey } = options;
    const answer = await fetch(`${this.control.url}${path}`, {
      method,
      headers: {
        ...(key === null ? {} : { authorization: `Bearer ${key}` }),
        ...(json === undefined ? {} : { "content-type": "application/json" }),
        ...options.headers,
      },
      ...(json === undefined ? {} : { body: JSON.stringify(json) }),
    });
    const text = await answer.text();
    const isJson = answer.headers.get("content-type")?.startsWith("application/json") === true;
    return {
      status: answer.status,
      headers: answer.headers,
      text,
      body: isJson ? (JSON.parse(text) as Record<string, unknown>) : {},
    };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#held.disposeAsync();
  }
}
