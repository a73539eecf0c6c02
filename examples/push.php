<?php
// Subscribes a browser, sends to it, waits for the result, and shows how an error looks.
declare(strict_types=1);

$service = getenv('PUSHSVC_URL');
$channel = getenv('PUSHSVC_CHANNEL');
$key = getenv('PUSHSVC_KEY');
$subscription = json_decode(getenv('PUSHSVC_SUBSCRIPTION'), true); // a browser's PushSubscription

/** The status and the JSON of the answer, whatever the status is. */
function call(string $method, string $path, array $headers, ?array $body = null): array
{
    global $service;
    $context = stream_context_create(['http' => [
        'method' => $method,
        'header' => ['Content-Type: application/json', ...$headers],
        'content' => $body === null ? '' : json_encode($body),
        'ignore_errors' => true,
        'timeout' => 30,
    ]]);
    $answer = file_get_contents($service . $path, false, $context);
    preg_match('/ (\d{3})/', $http_response_header[0], $found);
    return [(int) $found[1], json_decode($answer, true)];
}

// Public: browsers and apps make this call.
[, $subscribed] = call('POST', '/subscribe', ["X-Channel-ID: $channel"], $subscription);
echo "subscribed {$subscribed['subscriptionId']}\n";

// A repeat with the same Idempotency-Key sends nothing a second time.
$owner = "Authorization: Key $key";
$message = ['title' => 'Hello', 'body' => 'It works.', 'url' => 'https://example.com/'];
$once = 'Idempotency-Key: ' . bin2hex(random_bytes(16));
[, $sent] = call('POST', '/send-notification', [$owner, $once], $message);
echo "sent {$sent['notification_id']}\n";

while (true) {
    [, $shown] = call('GET', "/notification/{$sent['notification_id']}", [$owner]);
    if (in_array($shown['status'], ['sent', 'failed', 'cancelled'], true)) {
        break;
    }
    usleep(500_000);
}
echo "result {$shown['status']}: {$shown['delivered_count']} of {$shown['recipient_count']}\n";

// Every error has a stable code (/docs/errors).
[$status, $problem] = call('POST', '/send-notification', [$owner], ['title' => 'No body']);
echo "refused $status {$problem['code']} {$problem['errors'][0]['attr']}\n";
