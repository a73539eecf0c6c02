import { useCallback, useEffect, useState } from "react";

/** `push` is a client of `init`, made once outside of the component. */
export function usePush(push) {
  const [isSubscribed, setIsSubscribed] = useState(false);
  const [error, setError] = useState(null);

  useEffect(() => {
    let isMounted = true;
    const look = async () => {
      const found = await push.isSubscribed();
      if (isMounted) setIsSubscribed(found);
    };
    const fail = ({ detail }) => setError(detail);
    const changes = ["subscribed", "changed", "unsubscribed"];
    for (const type of changes) push.addEventListener(type, look);
    push.addEventListener("error", fail);
    look();
    return () => {
      isMounted = false;
      for (const type of changes) push.removeEventListener(type, look);
      push.removeEventListener("error", fail);
    };
  }, [push]);

  const subscribe = useCallback(
    () => push.subscribe().then(() => setError(null), setError),
    [push],
  );
  const unsubscribe = useCallback(() => push.unsubscribe().catch(setError), [push]);

  return { isSubscribed, error, subscribe, unsubscribe };
}
