import { init } from "pushsvc-browser";
import { createRoot } from "react-dom/client";
import { usePush } from "./use-push.js";

const push = init({
  baseUrl: import.meta.env.VITE_PUSHSVC_URL,
  channel: import.meta.env.VITE_PUSHSVC_CHANNEL,
  serviceWorker: "/push-sw.js",
});

function Notifications() {
  const { isSubscribed, error, subscribe, unsubscribe } = usePush(push);
  return (
    <>
      <button type="button" onClick={isSubscribed ? unsubscribe : subscribe}>
        {isSubscribed ? "Stop notifications" : "Get notifications"}
      </button>
      {error && <p role="alert">{error.message}</p>}
    </>
  );
}

createRoot(document.getElementById("app")).render(<Notifications />);
