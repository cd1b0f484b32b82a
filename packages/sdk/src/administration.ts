import {
  type ApiKey,
  type CreatedKey,
  type CreateKey,
  type ImportLayer,
  type JoinToken,
  type KeyList,
  type LayerList,
  type LayerManifest,
  type NodeList,
  type NodeView,
  type Project,
  type ProjectList,
  routes,
} from "@dsec/contracts";
import type { CallOptions, Transport } from "./transport.ts";

/** Making a layer of a large directory takes minutes. */
const importMsMax = 900_000;

/** Projects of the platform. Needs an admin key. */
export class Projects {
  readonly #transport: Transport;

  constructor(transport: Transport) {
    this.#transport = transport;
  }

  async create(name: string, options: CallOptions = {}): Promise<Project> {
    const call = { ...options, route: routes.createProject, what: "create project", json: { name } };
    return await this.#transport.json<Project>({ ...call, repeatable: false });
  }

  async list(options: CallOptions = {}): Promise<readonly Project[]> {
    const call = { ...options, route: routes.listProjects, what: "list projects", repeatable: true };
    return (await this.#transport.json<ProjectList>(call)).items;
  }
}

/** API keys. Needs an admin key. */
export class Keys {
  readonly #transport: Transport;

  constructor(transport: Transport) {
    this.#transport = transport;
  }

  /** The answer holds the secret, which is shown this once. */
  async create(key: CreateKey, options: CallOptions = {}): Promise<CreatedKey> {
    const call = { ...options, route: routes.createKey, what: "create key", json: key };
    return await this.#transport.json<CreatedKey>({ ...call, repeatable: false });
  }

  async list(options: CallOptions = {}): Promise<readonly ApiKey[]> {
    const call = { ...options, route: routes.listKeys, what: "list keys", repeatable: true };
    return (await this.#transport.json<KeyList>(call)).items;
  }

  async revoke(id: string, options: CallOptions = {}): Promise<void> {
    const call = { ...options, route: routes.revokeKey, what: "revoke key", parameters: { key: id } };
    await this.#transport.empty({ ...call, repeatable: true });
  }
}

/** Nodes of the fleet. Needs an admin key. */
export class Nodes {
  readonly #transport: Transport;

  constructor(transport: Transport) {
    this.#transport = transport;
  }

  async list(options: CallOptions = {}): Promise<readonly NodeView[]> {
    const call = { ...options, route: routes.listNodes, what: "list nodes", repeatable: true };
    return (await this.#transport.json<NodeList>(call)).items;
  }

  /** Lets an edge join until it expires. */
  async createJoinToken(options: CallOptions = {}): Promise<JoinToken> {
    const call = { ...options, route: routes.createJoinToken, what: "create join token", json: {} };
    return await this.#transport.json<JoinToken>({ ...call, repeatable: true });
  }
}

/** Layers that environments are made of. */
export class Layers {
  readonly #transport: Transport;

  constructor(transport: Transport) {
    this.#transport = transport;
  }

  async list(options: CallOptions = {}): Promise<readonly LayerManifest[]> {
    const call = { ...options, route: routes.listLayers, what: "list layers", repeatable: true };
    return (await this.#transport.json<LayerList>(call)).items;
  }

  /** Makes a directory of the nodes a layer; the same content is the same layer. Needs an admin key. */
  async import(layer: ImportLayer, options: CallOptions = {}): Promise<LayerManifest> {
    const call = { timeoutMs: importMsMax, ...options, route: routes.importLayer, what: "import layer" };
    return await this.#transport.json<LayerManifest>({ ...call, json: layer, repeatable: true });
  }
}
