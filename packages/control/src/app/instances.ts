import type { Database } from "../store/database.ts";
import { announceInstance } from "../store/nodes.ts";

/** How long an instance may be silent before the others forget it. */
const silentMsMax = 30_000;

/** The control instances of the platform, where edges reach them. */
export class Instances {
  readonly #database: Database;
  #urls: readonly string[] = [];
  #own: string | undefined;

  constructor(database: Database) {
    this.#database = database;
  }

  /** As of the last announcement. */
  get urls(): readonly string[] {
    return this.#urls;
  }

  /** This instance serves edges at `url` from now on. */
  async enter(url: string): Promise<void> {
    this.#own = url;
    await this.announce();
  }

  /** Tells the others that this instance lives, and learns of them. Called every few seconds. */
  async announce(): Promise<void> {
    if (this.#own !== undefined)
      this.#urls = await announceInstance(this.#database, this.#own, Date.now(), silentMsMax);
  }
}
