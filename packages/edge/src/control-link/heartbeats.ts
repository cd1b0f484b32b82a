import { randomBytes } from "node:crypto";
import {
  type Backend,
  type Capability,
  type Heartbeat,
  HeartbeatAnswer,
  limits,
  type NodeLoad,
  routes,
} from "@dsec/contracts";
import { Background, type Log, parse } from "@dsec/kit";
import { ClusterClient } from "./cluster-client.ts";
import type { Membership } from "./state.ts";

export interface HeartbeatOptions {
  readonly membership: Membership;
  /** Where control reaches this edge now. */
  readonly url: string;
  /** Where control instances on this machine reach it. */
  readonly localSocket: string;
  readonly backends: readonly Backend[];
  readonly capabilities: readonly Capability[];
  readonly load: () => NodeLoad;
  /** The control instances have changed: worth keeping for the next start. */
  readonly onControls: (controls: readonly string[]) => void;
  readonly log: Log;
}

/** A slow instance misses beats instead of holding up those to the others. */
const beatTimeoutMs = 3 * limits.heartbeatPeriodMs;

/** Tells every control instance each second how this node is; learns new instances from their answers. */
export class Heartbeats implements AsyncDisposable {
  readonly #options: HeartbeatOptions;
  readonly #client: ClusterClient;
  readonly #background: Background;
  readonly #bootId = randomBytes(16).toString("hex");
  readonly #silent = new Set<string>();
  readonly #underWay = new Set<string>();
  #controls: readonly string[];
  #sequence = 0;

  constructor(options: HeartbeatOptions) {
    this.#options = options;
    this.#controls = options.membership.controls;
    this.#client = new ClusterClient(options.membership);
    this.#background = new Background(options.log);
    this.#background.run("first heartbeat", async (signal) => this.#beat(signal));
    this.#background.every("heartbeat", limits.heartbeatPeriodMs, async (signal) => this.#beat(signal));
  }

  #beat(signal: AbortSignal): void {
    this.#sequence += 1;
    const { membership, url, localSocket, backends, capabilities, load } = this.#options;
    const heartbeat: Heartbeat = {
      nodeId: membership.nodeId,
      bootId: this.#bootId,
      sequence: this.#sequence,
      url,
      localSocket,
      load: load(),
      backends: [...backends],
      capabilities: [...capabilities],
    };
    for (const control of this.#controls) {
      if (!this.#underWay.has(control))
        this.#background.run(
          "heartbeat to one instance",
          async () => await this.#send(control, heartbeat, signal),
        );
    }
  }

  async #send(control: string, heartbeat: Heartbeat, signal: AbortSignal): Promise<void> {
    this.#underWay.add(control);
    try {
      const path = routes.heartbeat.path.replace(":node", heartbeat.nodeId);
      const bounded = AbortSignal.any([signal, AbortSignal.timeout(beatTimeoutMs)]);
      const answer = parse(
        HeartbeatAnswer,
        await this.#client.post(`${control}${path}`, heartbeat, bounded),
        "answer to a heartbeat",
      );
      if (this.#silent.delete(control)) this.#options.log.info({ control }, "control instance answers again");
      this.#learn(answer.controls);
    } catch (error) {
      if (signal.aborted) return;
      if (!this.#silent.has(control))
        this.#options.log.warn({ err: error, control }, "control instance does not answer");
      this.#silent.add(control);
    } finally {
      this.#underWay.delete(control);
    }
  }

  /** Instances that are silent stay until the others no longer name them. */
  #learn(controls: readonly string[]): void {
    if (
      controls.length === 0 ||
      (controls.length === this.#controls.length && controls.every((url) => this.#controls.includes(url)))
    )
      return;
    this.#controls = [...controls];
    this.#options.onControls(this.#controls);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#background[Symbol.asyncDispose]();
    await this.#client[Symbol.asyncDispose]();
  }
}
