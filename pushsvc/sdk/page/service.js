import { PushError } from "./errors.js";

const CALL_MS = 15_000;

/**
 * @param {string} url
 * @param {string} channel
 * @param {object} [body]
 */
export const callService = async (url, channel, body) => {
  /** @type {Record<string, string>} */
  const headers = { "X-Channel-ID": channel };
  /** @type {RequestInit} */
  const request = { headers, credentials: "omit", cache: "no-store" };
  if (body) {
    headers["Content-Type"] = "application/json";
    Object.assign(request, { method: "POST", body: JSON.stringify(body) });
  }
  let response;
  try {
    response = await fetch(url, { ...request, signal: AbortSignal.timeout?.(CALL_MS) });
  } catch (cause) {
    throw new PushError("offline", { cause, willRetry: true });
  }
  const answer = await response.json().catch(() => ({}));
  if (response.ok) return answer;
  const { status } = response;
  const willRetry = status >= 500 || status === 429 || status === 408;
  throw new PushError("refused", { problem: { status, ...answer }, willRetry });
};
