<?php
// Prints an identity_token: the proof of a backend that a device belongs to one of its users.
declare(strict_types=1);

$channel = getenv('PUSHSVC_CHANNEL');
$identityKey = getenv('PUSHSVC_IDENTITY_KEY'); // psi_…, of an HS256 key

/** For the user who is signed in, and for nobody else. Valid for an hour. */
function identity_token(string $userId): string
{
    global $channel, $identityKey;
    $claims = ['sub' => $userId, 'aud' => $channel, 'exp' => time() + 3600];
    $signed = encoded(['alg' => 'HS256', 'typ' => 'JWT']) . '.' . encoded($claims);
    return $signed . '.' . base64url(hash_hmac('sha256', $signed, $identityKey, true));
}

function encoded(array $value): string
{
    return base64url(json_encode($value, JSON_THROW_ON_ERROR));
}

function base64url(string $data): string
{
    return rtrim(strtr(base64_encode($data), '+/', '-_'), '=');
}

echo identity_token($argv[1]), "\n";
