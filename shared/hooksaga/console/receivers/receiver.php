<?php
// Run: WEBHOOK_SECRET=whsec_... php -S 0.0.0.0:8000 receiver.php
const TOLERANCE_SECONDS = 300;

/** Whether one of the signatures is right, and the time is near. $body: the bytes as they arrived. */
function isGenuine(string $key, string $id, string $sentAt, string $signatures, string $body): bool
{
    if ($id === '' || !preg_match('/^[0-9]{1,12}$/D', $sentAt)) {
        return false;
    }
    if (abs(time() - (int) $sentAt) > TOLERANCE_SECONDS) {
        return false;
    }
    $expected = 'v1,' . base64_encode(hash_hmac('sha256', "$id.$sentAt.$body", $key, true));
    foreach (explode(' ', $signatures) as $one) {
        if (hash_equals($expected, $one)) {
            return true;
        }
    }
    return false;
}

$key = base64_decode(substr((string) getenv('WEBHOOK_SECRET'), strlen('whsec_')), true);
$body = (string) file_get_contents('php://input');
$header = fn (string $name): string => $_SERVER['HTTP_' . $name] ?? '';

if ($_SERVER['REQUEST_METHOD'] !== 'POST' || strtok($_SERVER['REQUEST_URI'], '?') !== '/hooks') {
    http_response_code(404);
    return;
}
if (!$key || !isGenuine($key, $header('WEBHOOK_ID'), $header('WEBHOOK_TIMESTAMP'), $header('WEBHOOK_SIGNATURE'), $body)) {
    http_response_code(400);
    return;
}
$event = json_decode($body, true, 512, JSON_THROW_ON_ERROR);
if (is_array($event) && ($event['type'] ?? '') === 'subscription.verification') {
    header('content-type: text/plain');
    echo $event['challenge'];
    return;
}
error_log($header('WEBHOOK_ID') . ' ' . $body); // Skip an id that you have seen; else store the event.
http_response_code(204);
