/** What /sdk/prompt.mjs exports. */

import type { PushClient } from "./push";

export type PromptKind = "bell" | "slide-in" | "button" | "categories";

export interface PromptTexts {
  /** Also on the button, and the name of the bell. */
  title: string;
  body: string;
  /** Above the categories. */
  choose: string;
  allow: string;
  later: string;
  close: string;
  thanks: string;
  blocked: string;
  failed: string;
}

export interface PromptCategory {
  /** As in the channel's categories. */
  key: string;
  name: string;
  description?: string;
  /** Whether it is chosen at first. */
  chosen?: boolean;
}

export interface PromptOptions {
  channel: string;
  /** By default a slide-in. */
  kind?: PromptKind;
  /** Where it goes in the page; needed for a button. */
  target?: Element | string;
  /** The page view from which on it is shown. */
  afterPages?: number;
  /** Seconds on the page before it is shown. */
  afterSeconds?: number;
  /** Days after a refusal before it is shown again; 30 by default. */
  againAfterDays?: number;
  /** After so many refusals it is never shown again; 3 by default. */
  maxRefusals?: number;
  /** For the kind `categories`. */
  categories?: PromptCategory[];
  /** By language: texts that replace the prompt's own. */
  texts?: Record<string, Partial<PromptTexts>>;
  /** By default the page's language, or else the browser's. */
  lang?: string;
  /** By default the visitor's. */
  scheme?: "auto" | "light" | "dark";
  /** Colors that replace the prompt's own, such as `{ accent: "#9a3412" }`. */
  colors?: Partial<Record<"accent" | "accentText" | "background" | "text", string>>;
  /** Whether the service counts what visitors do with the prompt; `true` by default. */
  count?: boolean;
  /** Origin of the service; by default the one that prompt.mjs came from. */
  baseUrl?: string | URL;
}

export interface PromptEvents {
  shown: CustomEvent<null>;
  accepted: CustomEvent<null>;
  refused: CustomEvent<null>;
  /** The browser blocks the site's notifications. */
  blocked: CustomEvent<null>;
  /** `subscribe` or `setPreferences` failed, with their PushError. */
  failed: CustomEvent<Error>;
}

export interface Prompt extends EventTarget {
  /** Shows it now, whatever the visitor said before. */
  show(): void;
  /** Takes it out of the page, for good. */
  remove(): void;
  addEventListener<Name extends keyof PromptEvents>(
    type: Name,
    listener: (event: PromptEvents[Name]) => void,
    options?: boolean | AddEventListenerOptions,
  ): void;
  addEventListener(
    type: string,
    listener: EventListenerOrEventListenerObject | null,
    options?: boolean | AddEventListenerOptions,
  ): void;
}

/** Call it once on each page. Shows the prompt when its rules allow it. */
export function addPrompt(push: PushClient, options: PromptOptions): Prompt;

/**
 * Adds the prompt that the channel's page in the console describes, or none. `options` win over
 * those of the console.
 */
export function addConsolePrompt(
  push: PushClient,
  options: PromptOptions,
): Promise<Prompt | undefined>;
