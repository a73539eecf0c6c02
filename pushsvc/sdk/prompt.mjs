/*
 * Prompts for notifications: a bell, a slide-in, a button in the page, and a choice of categories.
 * The browser's own prompt appears only after a click on one of these. The types are
 * /sdk/prompt.d.ts.
 */

/**
 * One record for each channel in localStorage, a State, says how many pages the visitor has opened,
 * and when a prompt was shown and refused.
 *
 * @typedef {import("./prompt").PromptOptions} PromptOptions
 * @typedef {import("./prompt").PromptTexts} PromptTexts
 * @typedef {import("./push").PushClient} PushClient
 * @typedef {{ pages?: number, shownAt?: number, refusedAt?: number, refusals?: number }} State
 */

const COUNTED = ["shown", "accepted", "refused", "blocked"];
const KINDS = ["bell", "slide-in", "button", "categories"];
/** @type {Omit<Required<PromptOptions>, "channel" | "target" | "lang">} */
const DEFAULTS = {
  kind: "slide-in",
  afterPages: 1,
  afterSeconds: 0,
  againAfterDays: 30,
  maxRefusals: 3,
  categories: [],
  texts: {},
  scheme: "auto",
  colors: {},
  count: true,
  baseUrl: import.meta.url,
};
const DAY_MS = 24 * 3600 * 1000;
const THANKS_MS = 5000;
const RIGHT_TO_LEFT = /^(ar|fa|he|ur)\b/i;
const BELL =
  "M12 22a2.5 2.5 0 0 0 2.4-2H9.6a2.5 2.5 0 0 0 2.4 2Zm7-6-1.5-2V9.5A5.5 5.5 0 0 0 13.2 4V3.2a1.2 1.2 0 0 0-2.4 0V4a5.5 5.5 0 0 0-4.3 5.5V14L5 16v2h14Z";

class Prompt extends EventTarget {
  #push;
  #options;
  #record;
  #texts;
  #language;
  /** @type {HTMLElement | undefined} what is in the page */
  #host;
  /** @type {HTMLElement | undefined} */
  #panel;
  #status = make("p", { role: "status" });
  /** @type {HTMLInputElement[]} */
  #boxes = [];
  #isBusy = false;
  #isAccepted = false;
  #isRemoved = false;

  /**
   * @param {PushClient} push
   * @param {PromptOptions} options
   */
  constructor(push, options) {
    super();
    this.#options = { ...DEFAULTS, ...options, baseUrl: originOf(options) };
    const { channel, kind, target, categories } = this.#options;
    if (!push?.subscribe || !channel) throw new TypeError("addPrompt needs `push` and `channel`.");
    if (!KINDS.includes(kind)) throw new TypeError(`\`kind\` is one of: ${KINDS.join(", ")}.`);
    if (kind === "button" && !target) throw new TypeError("A button needs a `target`.");
    if (kind === "categories" && !categories.length) throw new TypeError("`categories` is empty.");
    this.#push = push;
    this.#record = `pushsvc-prompt:${channel}`;
    [this.#language, this.#texts] = textsFor(this.#options);
    push.addEventListener("subscribed", () => this.#isBusy || this.remove());
    /** All prompts in all tabs hear of it. */
    push.addEventListener("unsubscribed", () => {
      const { refusedAt = 0 } = this.#state ?? {};
      if (Date.now() - refusedAt > DAY_MS) this.#noteRefusal();
    });
    this.#start();
  }

  /** Shows it now, whatever the visitor said before. */
  show() {
    if (this.#host || this.#isRemoved) return;
    const { kind, target = document.body, scheme, colors } = this.#options;
    const place = typeof target === "string" ? document.querySelector(target) : target;
    if (!place) throw new TypeError(`The page has no \`target\` ${target}.`);
    const dir = RIGHT_TO_LEFT.test(this.#language) ? "rtl" : "ltr";
    this.#host = make("pushsvc-prompt", { kind, scheme, dir, lang: this.#language });
    for (const [name, color = ""] of Object.entries(colors)) {
      this.#host.style.setProperty(`--pushsvc-${name.replace("T", "-t")}`, color); // accentText
    }
    const root = this.#host.attachShadow({ mode: "open" });
    root.adoptedStyleSheets = [styles()];
    root.append(...this.#content(kind));
    place.append(this.#host);
    this.#tell("shown");
  }

  /** Takes it out of the page, for good. */
  remove() {
    this.#isRemoved = true;
    this.#host?.remove();
  }

  async #start() {
    const { pages = 0 } = this.#state ?? {};
    this.#note({ pages: pages + 1 });
    if (!(await this.#isDue())) return;
    await new Promise((resolve) => setTimeout(resolve, this.#options.afterSeconds * 1000));
    if (await this.#isDue()) this.show();
  }

  async #isDue() {
    const state = this.#state;
    const isAble = "adoptedStyleSheets" in document && "PushManager" in window && state;
    if (!isAble || !["default", "granted"].includes(this.#push.permission)) return false;
    if (await this.#push.isSubscribed()) return false;
    const { kind, afterPages, maxRefusals, againAfterDays } = this.#options;
    if (kind === "button") return true;
    const { pages = 0, refusals = 0, refusedAt = 0, shownAt = 0 } = state;
    if (pages < afterPages || refusals >= maxRefusals) return false;
    if (Date.now() - refusedAt < againAfterDays * DAY_MS) return false;
    return kind === "bell" || Date.now() - shownAt >= DAY_MS;
  }

  /**
   * @param {string} kind
   * @returns {HTMLElement[]}
   */
  #content(kind) {
    const { title } = this.#texts;
    if (kind === "button") {
      const inline = make("button", { class: "allow", type: "button" }, icon(), title);
      inline.onclick = () => this.#accept();
      return [inline, this.#status];
    }
    const panel = this.#makePanel(kind);
    if (kind !== "bell") {
      // A live region speaks only of changes.
      setTimeout(() => this.#say(title, true), 100);
      return [panel, this.#status];
    }
    const label = { "aria-label": title, "aria-expanded": "false", "aria-controls": "panel" };
    const opener = make("button", { class: "bell", type: "button", title, ...label }, icon());
    panel.hidden = true;
    const open = (/** @type {boolean} */ isOpen) => {
      panel.hidden = !isOpen;
      opener.setAttribute("aria-expanded", String(isOpen));
      (isOpen ? panel.querySelector("button") : opener)?.focus();
    };
    opener.onclick = () => open(Boolean(panel.hidden));
    onEscape(panel, () => open(false));
    return [make("aside", { "aria-label": title }, opener, panel, this.#status)];
  }

  /** @param {string} kind */
  #makePanel(kind) {
    const { title, body, choose, allow, later } = this.#texts;
    const yes = make("button", { class: "allow" }, allow);
    const no = make("button", { class: "later", type: "button" }, later);
    const form = make(
      "form",
      {},
      make("h2", { id: "title" }, title),
      make("p", { id: "body" }, body),
    );
    if (kind === "categories") form.append(this.#choices(choose));
    form.append(make("div", { class: "buttons" }, no, yes));
    form.onsubmit = (event) => {
      event.preventDefault();
      this.#accept();
    };
    no.onclick = () => this.#refuse();
    form.onchange = () => {
      /** @type {HTMLButtonElement} */ (yes).disabled = !this.#boxes.some(({ checked }) => checked);
    };
    const about = { "aria-labelledby": "title", "aria-describedby": "body" };
    this.#panel = make("div", { id: "panel", role: "dialog", ...about }, form);
    onEscape(this.#panel, () => this.#refuse());
    return this.#panel;
  }

  /** @param {string} legend */
  #choices(legend) {
    const labels = this.#options.categories.map(
      ({ key, name, description = "", chosen = true }) => {
        const box = /** @type {HTMLInputElement} */ (
          make("input", { type: "checkbox", name: key })
        );
        box.checked = chosen;
        this.#boxes.push(box);
        return make("label", {}, box, make("span", {}, name, make("small", {}, description)));
      },
    );
    return make("fieldset", {}, make("legend", {}, legend), ...labels);
  }

  async #accept() {
    if (this.#isBusy) return;
    this.#isBusy = true;
    const { thanks, blocked, failed } = this.#texts;
    try {
      await this.#push.subscribe(); // first, because the click allows the question only for a moment
      if (!this.#isAccepted) this.#tell("accepted");
      this.#isAccepted = true;
      if (this.#boxes.length) await this.#push.setPreferences(this.#chosen);
      this.#finish(thanks);
      setTimeout(() => this.remove(), THANKS_MS);
    } catch (error) {
      if (error.code === "permission_dismissed") this.#refuse();
      else if (error.code === "permission_denied") {
        this.#tell("blocked");
        this.#finish(blocked);
      } else {
        this.#tell("failed", error);
        this.#say(failed);
      }
    } finally {
      this.#isBusy = false;
    }
  }

  get #chosen() {
    return Object.fromEntries(this.#boxes.map(({ name, checked }) => [name, checked]));
  }

  #refuse() {
    const isButton = this.#options.kind === "button"; // which asks nobody, and so stays
    if (!this.#isAccepted) {
      if (!isButton) this.#noteRefusal();
      this.#tell("refused");
    }
    if (!isButton) this.remove();
  }

  /**
   * Leaves only this text.
   *
   * @param {string} text
   */
  #finish(text) {
    const close = make("button", { class: "later", type: "button" }, this.#texts.close);
    close.onclick = () => this.remove();
    if (this.#panel) {
      onEscape(this.#panel, () => this.remove());
      this.#panel.setAttribute("aria-labelledby", "body");
      this.#panel.replaceChildren(make("p", { id: "body" }, text), close);
      close.focus();
    } else this.#host?.shadowRoot?.querySelector("button")?.remove();
    this.#say(text, Boolean(this.#panel));
  }

  /**
   * @param {string} text
   * @param {boolean} [isUnseen] for screen readers alone, because the panel shows it
   */
  #say(text, isUnseen = false) {
    if (this.#panel && !isUnseen) this.#panel.querySelector(".buttons")?.before(this.#status);
    this.#status.className = isUnseen ? "unseen" : "";
    this.#status.textContent = text;
  }

  #noteRefusal() {
    this.#note({ refusals: (this.#state?.refusals ?? 0) + 1, refusedAt: Date.now() });
  }

  /**
   * @param {string} type
   * @param {unknown} [detail]
   */
  #tell(type, detail) {
    this.dispatchEvent(new CustomEvent(type, { detail }));
    if (type === "shown") {
      const { shownAt = 0 } = this.#state ?? {};
      if (Date.now() - shownAt < DAY_MS) return;
      this.#note({ shownAt: Date.now() });
    }
    const { channel, kind, count, baseUrl } = this.#options;
    if (!count || !COUNTED.includes(type)) return;
    fetch(new URL("/prompt-events", baseUrl), {
      method: "POST",
      headers: { "Content-Type": "application/json", "X-Channel-ID": channel },
      body: JSON.stringify({ kind, event: type }),
      credentials: "omit",
      keepalive: true, // the visitor may leave the page
    }).catch(() => {});
  }

  /** @returns {State | undefined} undefined if the browser stores nothing */
  get #state() {
    try {
      return JSON.parse(localStorage.getItem(this.#record) ?? "{}");
    } catch {
      return undefined;
    }
  }

  /** @param {State} change */
  #note(change) {
    try {
      localStorage.setItem(this.#record, JSON.stringify({ ...this.#state, ...change }));
    } catch {
      // blocked or full
    }
  }
}

/**
 * @param {PushClient} push
 * @param {PromptOptions} options
 */
export const addPrompt = (push, options) => new Prompt(push, options);

/**
 * Adds the prompt that the console describes. `options` win over those of the console.
 *
 * @param {PushClient} push
 * @param {PromptOptions} options
 */
export const addConsolePrompt = async (push, options) => {
  const headers = { "X-Channel-ID": options.channel };
  const url = new URL("/prompt", originOf(options));
  const response = await fetch(url, { headers, credentials: "omit" });
  const { prompt, detail } = await response.json();
  if (!response.ok) throw new Error(detail);
  return prompt ? addPrompt(push, { ...prompt, ...options }) : undefined;
};

/** @param {PromptOptions} options */
const originOf = ({ baseUrl = DEFAULTS.baseUrl }) => {
  if (!baseUrl) throw new TypeError("A prompt needs `baseUrl`, the address of the service.");
  return baseUrl;
};

/**
 * @param {string} tag
 * @param {Record<string, string>} attributes
 * @param {(Node | string)[]} children
 */
const make = (tag, attributes = {}, ...children) => {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...children);
  return element;
};

/**
 * @param {HTMLElement} element
 * @param {() => void} action
 */
const onEscape = (element, action) => {
  element.onkeydown = ({ key }) => {
    if (key === "Escape") action();
  };
};

const icon = () => {
  const [svg, path] = ["svg", "path"].map((name) =>
    document.createElementNS("http://www.w3.org/2000/svg", name),
  );
  svg.setAttribute("viewBox", "0 0 24 24");
  svg.setAttribute("aria-hidden", "true");
  path.setAttribute("d", BELL);
  svg.append(path);
  return svg;
};

/**
 * The first language of the options, the page and the browser that has texts.
 *
 * @param {PromptOptions} options
 * @returns {[string, PromptTexts]}
 */
const textsFor = ({ lang, texts = {} }) => {
  for (const name of [lang, document.documentElement.lang, ...navigator.languages]) {
    const base = name?.split("-")[0].toLowerCase() ?? "";
    const own = texts[name ?? ""] ?? texts[base];
    if (own ?? TEXTS[base]) return [name ?? "", { ...TEXTS.en, ...TEXTS[base], ...own }];
  }
  return ["en", { ...TEXTS.en, ...texts.en }];
};

// Constructed, because sites with a strict content security policy allow no other.
const styles = () => {
  const sheet = new CSSStyleSheet();
  sheet.replaceSync(STYLES);
  return sheet;
};

const DARK = `
  --back: var(--pushsvc-background, #202226);
  --fore: var(--pushsvc-text, #f2f3f5);
  --accent: var(--pushsvc-accent, #9dbdff);
  --on-accent: var(--pushsvc-accent-text, #10131a);
  color-scheme: dark;
`;

const STYLES = `
  :host {
    all: initial;
    --back: var(--pushsvc-background, #fff);
    --fore: var(--pushsvc-text, #1b1d21);
    --accent: var(--pushsvc-accent, #1f4fd1);
    --on-accent: var(--pushsvc-accent-text, #fff);
    --radius: var(--pushsvc-radius, 0.75rem);
    color: var(--fore);
    color-scheme: light;
    font: 1rem/1.5 var(--pushsvc-font, system-ui, sans-serif);
  }
  @media (prefers-color-scheme: dark) { :host([scheme="auto"]) { ${DARK} } }
  :host([scheme="dark"]) { ${DARK} }
  [hidden] { display: none !important; }
  [role="dialog"], .bell {
    position: fixed;
    z-index: 2147483000;
    inset-block-end: 1rem;
    inset-inline-end: 1rem;
    box-shadow: 0 0.25rem 1.5rem rgb(0 0 0 / 0.3);
  }
  [role="dialog"] {
    box-sizing: border-box;
    inline-size: min(24rem, calc(100% - 2rem));
    max-block-size: calc(100% - 2rem);
    overflow: auto;
    scroll-padding-block-end: 5rem;
    padding: 1.25rem;
    background: var(--back);
    border: 1px solid color-mix(in srgb, var(--fore) 20%, var(--back));
    border-radius: var(--radius);
  }
  aside [role="dialog"] { inset-block-end: 5rem; max-block-size: calc(100% - 6rem); }
  h2 { margin: 0; font-size: 1.125rem; line-height: 1.3; }
  p { margin: 0.5rem 0 0; overflow-wrap: anywhere; }
  fieldset { margin: 1rem 0 0; padding: 0; border: 0; }
  legend { padding: 0; font-weight: 600; }
  label { display: flex; gap: 0.75rem; padding-block: 0.375rem; cursor: pointer; }
  input { flex: none; inline-size: 1.25rem; block-size: 1.25rem; margin: 0.125rem 0 0; accent-color: var(--accent); }
  small { display: block; font-size: 0.875rem; }
  .buttons {
    position: sticky;
    inset-block-end: -1.25rem;
    display: flex;
    flex-wrap: wrap;
    justify-content: end;
    gap: 0.5rem;
    margin-block: 0.5rem -1.25rem;
    padding-block: 0.75rem 1.25rem;
    background: var(--back);
  }
  button {
    min-block-size: 2.75rem;
    padding: 0 1rem;
    border: 1px solid transparent;
    border-radius: var(--radius);
    font: inherit;
    font-weight: 600;
    cursor: pointer;
  }
  button:disabled { opacity: 0.5; cursor: default; }
  .allow, .bell { background: var(--accent); color: var(--on-accent); }
  .later { background: transparent; color: inherit; }
  #panel > .later { margin-block-start: 0.75rem; border-color: currentcolor; }
  .bell { inline-size: 3rem; block-size: 3rem; padding: 0; border-radius: 50%; }
  svg { inline-size: 1.5em; block-size: 1.5em; fill: currentcolor; vertical-align: middle; }
  button:not(.bell) > svg { margin-inline-end: 0.5em; }
  :focus-visible { outline: 3px solid var(--accent); outline-offset: 2px; }
  .unseen { position: absolute; inline-size: 1px; block-size: 1px; overflow: hidden; clip-path: inset(50%); }
  @media (prefers-reduced-motion: no-preference) {
    [role="dialog"] { animation: come 0.3s ease-out; }
    @keyframes come { from { opacity: 0; transform: translateY(1rem); } }
  }
  @media print { :host { display: none; } }
`;

/** @type {Record<string, PromptTexts>} */
const TEXTS = {
  en: {
    title: "Get notifications",
    body: "We tell you what is new, even when this page is closed. You can turn it off at any time.",
    choose: "What would you like to hear about?",
    allow: "Yes, notify me",
    later: "Not now",
    close: "Close",
    thanks: "Thank you. Notifications are on.",
    blocked: "Your browser blocks notifications of this site. You can allow them in its settings.",
    failed: "That did not work. Please try again later.",
  },
  zh: {
    title: "接收通知",
    body: "即使关闭此页面，我们也会告诉您最新消息。您可以随时关闭通知。",
    choose: "您想了解哪些内容？",
    allow: "好的，通知我",
    later: "以后再说",
    close: "关闭",
    thanks: "谢谢，通知已开启。",
    blocked: "您的浏览器已屏蔽此网站的通知。您可以在浏览器设置中允许通知。",
    failed: "操作未成功，请稍后再试。",
  },
  es: {
    title: "Recibir notificaciones",
    body: "Le contamos las novedades aunque esta página esté cerrada. Puede desactivarlas cuando quiera.",
    choose: "¿Qué temas le interesan?",
    allow: "Sí, avísenme",
    later: "Ahora no",
    close: "Cerrar",
    thanks: "Gracias. Las notificaciones están activadas.",
    blocked:
      "Su navegador bloquea las notificaciones de este sitio. Puede permitirlas en su configuración.",
    failed: "No ha funcionado. Inténtelo de nuevo más tarde.",
  },
  ar: {
    title: "تلقي الإشعارات",
    body: "نخبرك بكل جديد حتى عند إغلاق هذه الصفحة. يمكنك إيقافها في أي وقت.",
    choose: "ما المواضيع التي تهمك؟",
    allow: "نعم، أرسل الإشعارات",
    later: "ليس الآن",
    close: "إغلاق",
    thanks: "شكرًا. تم تفعيل الإشعارات.",
    blocked: "يحظر متصفحك إشعارات هذا الموقع. يمكنك السماح بها في إعداداته.",
    failed: "لم ينجح ذلك. يرجى المحاولة لاحقًا.",
  },
  pt: {
    title: "Receber notificações",
    body: "Contamos as novidades mesmo com esta página fechada. Você pode desativar quando quiser.",
    choose: "Sobre o que você quer saber?",
    allow: "Sim, quero receber",
    later: "Agora não",
    close: "Fechar",
    thanks: "Obrigado. As notificações estão ativadas.",
    blocked:
      "Seu navegador bloqueia as notificações deste site. Você pode permiti-las nas configurações.",
    failed: "Não funcionou. Tente novamente mais tarde.",
  },
  id: {
    title: "Terima notifikasi",
    body: "Kami mengabari Anda hal baru meski halaman ini ditutup. Anda dapat mematikannya kapan saja.",
    choose: "Kabar apa yang Anda inginkan?",
    allow: "Ya, kabari saya",
    later: "Nanti saja",
    close: "Tutup",
    thanks: "Terima kasih. Notifikasi sudah aktif.",
    blocked:
      "Browser Anda memblokir notifikasi situs ini. Anda dapat mengizinkannya di setelan browser.",
    failed: "Tidak berhasil. Silakan coba lagi nanti.",
  },
  fr: {
    title: "Recevoir des notifications",
    body: "Nous vous informons des nouveautés même si cette page est fermée. Vous pouvez les désactiver à tout moment.",
    choose: "Quels sujets vous intéressent ?",
    allow: "Oui, m’informer",
    later: "Pas maintenant",
    close: "Fermer",
    thanks: "Merci. Les notifications sont activées.",
    blocked:
      "Votre navigateur bloque les notifications de ce site. Vous pouvez les autoriser dans ses paramètres.",
    failed: "Cela n’a pas fonctionné. Veuillez réessayer plus tard.",
  },
  ja: {
    title: "通知を受け取る",
    body: "このページを閉じていても最新情報をお知らせします。いつでも停止できます。",
    choose: "どのお知らせをご希望ですか？",
    allow: "はい、受け取る",
    later: "今はしない",
    close: "閉じる",
    thanks: "ありがとうございます。通知が有効になりました。",
    blocked: "ブラウザーがこのサイトの通知をブロックしています。ブラウザーの設定で許可できます。",
    failed: "うまくいきませんでした。後でもう一度お試しください。",
  },
  ru: {
    title: "Получать уведомления",
    body: "Мы сообщим о новостях, даже если эта страница закрыта. Отключить уведомления можно в любой момент.",
    choose: "О чём вам сообщать?",
    allow: "Да, уведомлять",
    later: "Не сейчас",
    close: "Закрыть",
    thanks: "Спасибо. Уведомления включены.",
    blocked: "Браузер блокирует уведомления этого сайта. Разрешить их можно в настройках браузера.",
    failed: "Не получилось. Попробуйте позже.",
  },
  de: {
    title: "Benachrichtigungen erhalten",
    body: "Wir melden Neues, auch wenn diese Seite geschlossen ist. Sie können das jederzeit abschalten.",
    choose: "Worüber möchten Sie informiert werden?",
    allow: "Ja, bitte",
    later: "Jetzt nicht",
    close: "Schließen",
    thanks: "Danke. Benachrichtigungen sind eingeschaltet.",
    blocked:
      "Ihr Browser blockiert Benachrichtigungen dieser Website. Sie können sie in seinen Einstellungen erlauben.",
    failed: "Das hat nicht geklappt. Bitte versuchen Sie es später noch einmal.",
  },
};

const elements = globalThis.customElements; // not on a server that renders pages
if (elements && !elements.get("pushsvc-prompt")) {
  elements.define("pushsvc-prompt", class extends HTMLElement {});
}
