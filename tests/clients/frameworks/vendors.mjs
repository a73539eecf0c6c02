// Stand-ins for the modules of the frameworks, on a phone that the environment describes: PLATFORM,
// ADDRESS, and the file STORE. Their functions behave as the vendors document them.
import { existsSync, readFileSync, writeFileSync } from "node:fs";

const { PLATFORM, ADDRESS, STORE } = process.env;
const FCM_OF_IOS = `${"a".repeat(22)}:${"b".repeat(140)}`;
const isIos = PLATFORM === "ios";

const store = {
  get: () => (existsSync(STORE) ? readFileSync(STORE, "utf8") : null),
  set: (text) => writeFileSync(STORE, text),
};

/** What the user does, for the test. */
export const user = { taps: [], renews: [], arrivals: [] };

// react-native
export const Platform = { OS: PLATFORM };
export const PermissionsAndroid = {
  PERMISSIONS: { POST_NOTIFICATIONS: "android.permission.POST_NOTIFICATIONS" },
  request: async (name) => (name === "android.permission.POST_NOTIFICATIONS" ? "granted" : "denied"),
};

// @react-native-async-storage/async-storage
export default {
  getItem: async () => store.get(),
  setItem: async (_, text) => store.set(text),
};

// @react-native-firebase/messaging
let isRegisteredWithApple = false;
export const getMessaging = () => ({});
export const requestPermission = async () => 1;
export const registerDeviceForRemoteMessages = async () => {
  isRegisteredWithApple = true;
};
export const getAPNSToken = async () => (isIos && isRegisteredWithApple ? ADDRESS : null);
export const getToken = async () => (isIos ? FCM_OF_IOS : ADDRESS);
export const getInitialNotification = async () => null;
export const onMessage = (_, listener) => user.arrivals.push(listener);
export const onTokenRefresh = (_, listener) => user.renews.push(listener);
export const onNotificationOpenedApp = (_, listener) =>
  user.taps.push((data) => listener({ data }));

// @capacitor/core, preferences and push-notifications. Apple's tokens come in capital letters.
export const Capacitor = { getPlatform: () => PLATFORM };
export const Preferences = {
  get: async () => ({ value: store.get() }),
  set: async ({ value }) => store.set(value),
};
export const PushNotifications = {
  addListener: async (name, listener) => {
    if (name === "registration") user.renews.push((value) => listener({ value }));
    else user.taps.push((data) => listener({ actionId: "tap", notification: { data } }));
  },
  requestPermissions: async () => ({ receive: "granted" }),
  register: async () => {
    for (const each of user.renews) each(isIos ? ADDRESS.toUpperCase() : ADDRESS);
  },
};

// expo-crypto, expo-secure-store and expo-notifications. Asking for the token also calls the listener.
export const getRandomValues = (array) => crypto.getRandomValues(array);
export const getItemAsync = async () => store.get();
export const setItemAsync = async (_, text) => store.set(text);
export const requestPermissionsAsync = async () => ({ granted: true });
export const addPushTokenListener = (listener) =>
  user.renews.push((data) => listener({ type: PLATFORM, data }));
export const getDevicePushTokenAsync = async () => {
  for (const each of user.renews) each(ADDRESS);
  return { type: PLATFORM, data: ADDRESS };
};
export const addNotificationResponseReceivedListener = (listener) =>
  user.taps.push((data) => {
    const trigger = isIos ? { type: "push", payload: data } : { type: "push", remoteMessage: { data } };
    listener({ notification: { request: { content: { data: {} }, trigger } } });
  });
