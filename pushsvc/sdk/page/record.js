/**
 * @typedef {import("../push").Attributes} Attributes
 * @typedef {import("./errors.js").PushError} PushError
 * @typedef {{ external_id: string | null, identity_token?: string }} Login
 * @typedef {{ id?: string, endpoint?: string, auth?: string }} Reported what the service was told
 *   last; `auth` proves that the endpoint was this browser's
 * @typedef {{ attributes?: Attributes, login?: Login, add_tags?: string[], remove_tags?: string[] }}
 *   Unsaid what the service was not told yet
 * @typedef {Reported & Unsaid & { externalId?: string | null, isWanted?: boolean,
 *   isPending?: boolean, hasLeft?: boolean, settledAt?: number, takeOver?: boolean, key?: string,
 *   worker?: string, scope?: string }} State `key`: of the subscription; `worker`: its worker's
 *   address, of the registration with `scope`
 */

/** @type {Unsaid} */
export const NOTHING_UNSAID = {
  attributes: undefined,
  login: undefined,
  add_tags: undefined,
  remove_tags: undefined,
};

/** What the site's tabs know of a channel, in localStorage. */
export class PushRecord {
  #name;
  /** @type {State | undefined} if localStorage is blocked or full */
  #unstored;

  /** @param {string} channel */
  constructor(channel) {
    this.#name = `pushsvc:${channel}`;
  }

  /** @returns {State} */
  read() {
    if (this.#unstored) return this.#unstored;
    try {
      return JSON.parse(localStorage.getItem(this.#name) ?? "{}");
    } catch {
      return {};
    }
  }

  /**
   * Passes an event on to the site's other tabs.
   *
   * @param {string} type
   * @param {any} detail
   */
  tell(type, detail) {
    const told = { type, detail, cause: detail.cause?.message };
    try {
      localStorage.setItem(`${this.#name}:event`, JSON.stringify(told));
      localStorage.removeItem(`${this.#name}:event`); // so that the same event can be told again
    } catch {
      // blocked or full: the other tabs have records of their own
    }
  }

  /** @param {(type: any, detail: any, cause?: string) => void} listener */
  onTold(listener) {
    addEventListener("storage", ({ key, newValue }) => {
      if (key === this.#name) this.#unstored = undefined; // another tab's is newer
      if (key !== `${this.#name}:event` || !newValue) return;
      const { type, detail, cause } = JSON.parse(newValue);
      listener(type, detail, cause);
    });
  }

  /** @param {State} change */
  note(change) {
    const state = { ...this.read(), ...change };
    try {
      localStorage.setItem(this.#name, JSON.stringify(state));
      this.#unstored = undefined;
    } catch {
      this.#unstored = state; // which lasts as long as this page
    }
  }
}

/**
 * What the record says after a further change of tags. The last word on a tag holds.
 *
 * @param {string[]} tags
 * @param {string[] | undefined} same
 * @param {string[] | undefined} opposite
 */
export const withTags = (tags, same = [], opposite = []) => [
  [...new Set([...same, ...tags])],
  opposite.filter((tag) => !tags.includes(tag)),
];

/**
 * Whom the service knows the subscription `id` to belong to, after a call that said the record's
 * login, or if it refused the login.
 *
 * @param {State} record
 * @param {string} id
 * @param {PushError} [refusal]
 */
export const personKnown = ({ id: before, login, externalId }, id, refusal) => {
  if (login && !refusal) return login.external_id;
  return id === before ? externalId : undefined;
};
