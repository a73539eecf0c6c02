/**
 * @typedef {import("../push").ErrorCode} ErrorCode
 * @typedef {import("../push").Problem} Problem
 */

const TODO = {
  permission_denied:
    "Notifications are blocked for this site. Allow them in the browser's settings for this site; some block them in private windows.",
  permission_dismissed:
    "The browser's question was closed without an answer. Ask again at another click.",
  insecure_context: "Push needs https or localhost. Open the page over https.",
  private_mode: "Private windows of this browser have no push. Open the page in a normal one.",
  ios_needs_install:
    "On iPhone and iPad push works only in installed web apps. Tap Share, Add to Home Screen, and open the app from there.",
  unsupported: "This browser has no web push. Update it, or use another.",
  no_service_worker:
    "The service worker does not work. Serve the file that `init` names from this site, as JavaScript, with the importScripts line in it.",
  worker_replaced:
    "Another service worker has taken the place of the one that `init` names. Add the importScripts line to it.",
  foreign_subscription:
    "This browser is subscribed to another push service. subscribe({ takeOver: true }) ends that subscription.",
  push_service_unreachable:
    "The browser cannot reach its push service. Check the network; some Chromium builds have no push service, and Brave has it switched off in its settings.",
  no_address: "The browser gave no address for push. Try again later, or use another browser.",
  storage_blocked:
    "The browser stores no data for this site, and push needs that. Allow cookies and site data in the browser's settings for this site.",
  offline:
    "The service cannot be reached. This is tried again when the network is back, or at the next visit.",
  refused: "The service refused the request.",
  not_subscribed: "This browser is not subscribed. Call subscribe() first.",
};

export class PushError extends Error {
  /**
   * `problem`: what the service answered (RFC 9457). `willRetry`: nothing needs to be done.
   *
   * @param {ErrorCode} code
   * @param {{ cause?: any, problem?: Problem, willRetry?: boolean }} about
   */
  constructor(code, { cause, problem, willRetry = false } = {}) {
    const words = problem?.detail ?? cause?.message;
    super(words ? `${TODO[code]} (${words})` : TODO[code], { cause });
    this.name = "PushError";
    this.code = code;
    this.problem = problem;
    this.willRetry = willRetry;
  }
}
