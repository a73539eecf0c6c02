<?php
// With the package that OpenAPI Generator makes of docs/openapi.yaml, for PHP.
declare(strict_types=1);

use OpenAPI\Client\Api\NotificationsApi;
use OpenAPI\Client\Api\SubscriptionsApi;
use OpenAPI\Client\ApiException;
use OpenAPI\Client\Configuration;
use OpenAPI\Client\Model\NotificationStatus;
use OpenAPI\Client\Model\Problem;
use OpenAPI\Client\Model\SendInput;
use OpenAPI\Client\Model\SubscribeInput;
use OpenAPI\Client\ObjectSerializer;

require 'GuzzleHttp/autoload.php'; // of Debian's php-guzzlehttp-guzzle
spl_autoload_register(function (string $class): void {
    if (str_starts_with($class, 'OpenAPI\\Client\\')) {
        $path = str_replace(['OpenAPI\\Client\\', '\\'], ['', '/'], $class);
        require_once __DIR__ . "/generated/lib/$path.php";
    }
});
foreach (glob(__DIR__ . '/generated/lib/{*,*/*}.php', GLOB_BRACE) as $file) {
    require_once $file; // those too that are not used here must be PHP
}

$configuration = (new Configuration())
    ->setHost(getenv('PUSHSVC_URL'))
    ->setApiKey('Authorization', getenv('PUSHSVC_KEY'))
    ->setApiKeyPrefix('Authorization', 'Key');
$notifications = new NotificationsApi(config: $configuration);

/** @var SubscribeInput $device */
$device = ObjectSerializer::deserialize(json_decode(getenv('PUSHSVC_SUBSCRIPTION')), SubscribeInput::class);
$subscribed = (new SubscriptionsApi(config: $configuration))->subscribe(getenv('PUSHSVC_CHANNEL'), $device);
echo "subscribed {$subscribed->getSubscriptionId()}\n";

$message = new SendInput(['title' => 'Hello', 'body' => 'It works.', 'url' => 'https://example.com/']);
$sent = $notifications->sendNotification($message, bin2hex(random_bytes(16)));
echo "sent {$sent->getNotificationId()}\n";

$final = [NotificationStatus::SENT, NotificationStatus::FAILED, NotificationStatus::CANCELLED];
do {
    usleep(200_000);
    $shown = $notifications->getNotification($sent->getNotificationId());
} while (!in_array($shown->getStatus(), $final, true));
echo "result {$shown->getStatus()}: {$shown->getDeliveredCount()} of {$shown->getRecipientCount()}\n";

try {
    $nowhere = new SendInput(['body' => 'x', 'segment_id' => $subscribed->getSubscriptionId()]);
    $notifications->sendNotification($nowhere);
} catch (ApiException $error) {
    $problem = $error->getResponseObject();
    assert($problem instanceof Problem);
    echo "refused {$error->getCode()} {$problem->getCode()}\n";
}
