#!/bin/sh
# Subscribes a browser, sends to it, waits for the result, and shows how an error looks.
# PUSHSVC_SUBSCRIPTION is a browser's PushSubscription, as JSON.
set -eu

# A text or a number of the answer that has this name.
field() { sed -n "s/.*\"$1\":\"\{0,1\}\([^\",}]*\).*/\1/p"; }

call() { curl --silent --max-time 30 --header 'Content-Type: application/json' "$@"; }

# Public: browsers and apps make this call.
subscribed=$(call "$PUSHSVC_URL/subscribe" \
    --header "X-Channel-ID: $PUSHSVC_CHANNEL" --data "$PUSHSVC_SUBSCRIPTION")
echo "subscribed $(echo "$subscribed" | field subscriptionId)"

# A repeat with the same Idempotency-Key sends nothing a second time.
owner="Authorization: Key $PUSHSVC_KEY"
sent=$(call "$PUSHSVC_URL/send-notification" --header "$owner" --header "Idempotency-Key: $$-$(date +%s)" \
    --data '{"title": "Hello", "body": "It works.", "url": "https://example.com/"}' | field notification_id)
echo "sent $sent"

while :; do
    shown=$(call "$PUSHSVC_URL/notification/$sent" --header "$owner")
    status=$(echo "$shown" | field status)
    case "$status" in sent | failed | cancelled) break ;; esac
    sleep 0.5
done
echo "result $status: $(echo "$shown" | field delivered_count) of $(echo "$shown" | field recipient_count)"

# Every error has a stable code (/docs/errors).
problem=$(call "$PUSHSVC_URL/send-notification" --header "$owner" --data '{"title": "No body"}')
echo "refused $(echo "$problem" | field status) $(echo "$problem" | sed 's/.*"status":[0-9]*,"code":"\([^"]*\)".*/\1/') $(echo "$problem" | field attr)"
