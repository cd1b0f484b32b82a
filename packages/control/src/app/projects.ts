import {
  type ApiKey,
  type CreatedKey,
  type CreateKey,
  type CreateProject,
  newKeyId,
  newProjectId,
  PlatformError,
  type Project,
} from "@dsec/contracts";
import { hashSecret, keyText, newSecret } from "../iam/secrets.ts";
import type { Database } from "../store/database.ts";
import { countKeys, insertKey, listKeys, revokeKey } from "../store/keys.ts";
import { findProject, insertProject, listProjects } from "../store/projects.ts";

/** Projects and their keys. Callers are admins: the API has checked. */
export class Projects {
  readonly #database: Database;

  constructor(database: Database) {
    this.#database = database;
  }

  async list(): Promise<Project[]> {
    return await listProjects(this.#database);
  }

  async create(request: CreateProject): Promise<Project> {
    const project = { id: newProjectId(), name: request.name, createdAtMs: Date.now() };
    if (!(await insertProject(this.#database, project))) {
      throw new PlatformError(
        "conflict",
        `Cannot create project "${request.name}": there is one of that name`,
      );
    }
    return project;
  }

  async listKeys(): Promise<ApiKey[]> {
    return (await listKeys(this.#database)).map(({ secretSha256: _secret, ...key }) => key);
  }

  /** The secret is in the answer and nowhere else; `keep` hears it before the store knows the key. */
  async createKey(request: CreateKey, keep: (secret: string) => void = () => undefined): Promise<CreatedKey> {
    const project = await findProject(this.#database, request.project);
    if (project === undefined)
      throw new PlatformError("not_found", `Cannot find project "${request.project}"`);
    const secret = newSecret();
    const id = newKeyId();
    const key: ApiKey = {
      id,
      project: project.id,
      name: request.name,
      role: request.role ?? "member",
      createdAtMs: Date.now(),
      revokedAtMs: null,
    };
    keep(keyText(id, secret));
    await insertKey(this.#database, { ...key, secretSha256: hashSecret(secret) });
    return { key, secret: keyText(id, secret) };
  }

  async revokeKey(id: string): Promise<void> {
    if (!(await revokeKey(this.#database, id, Date.now())))
      throw new PlatformError("not_found", `Cannot find key "${id}"`);
  }

  /**
   * On an empty store: project `default` and its first admin key. Undefined when there are keys already. `keep` hears the secret first:
   * a crash in between leaves a secret without a key, and the next start makes another, never a key that nobody knows.
   */
  async bootstrap(keep: (secret: string) => void): Promise<CreatedKey | undefined> {
    if ((await countKeys(this.#database)) > 0) return undefined;
    await insertProject(this.#database, { id: newProjectId(), name: "default", createdAtMs: Date.now() });
    return await this.createKey({ project: "default", name: "bootstrap", role: "admin" }, keep);
  }
}
