/** What a service worker has besides what every worker has: TypeScript takes `self` for any of them. */
declare const clients: Clients;
declare const registration: ServiceWorkerRegistration;
declare function skipWaiting(): Promise<void>;

interface WorkerGlobalScopeEventMap {
  message: ExtendableMessageEvent;
  notificationclick: NotificationEvent;
  notificationclose: NotificationEvent;
  push: PushEvent;
  pushsubscriptionchange: PushSubscriptionChangeEvent;
}

interface NotificationOptions {
  /** Chromium's. */
  image?: string;
}
