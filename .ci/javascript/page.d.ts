/** What pages have and TypeScript's own list leaves out. */
interface Navigator {
  /** Safari's: whether the page runs as an installed web app. */
  readonly standalone?: boolean;
}
