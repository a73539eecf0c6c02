// Prints an identity_token: the proof of a backend that a device belongs to one of its users.
package main

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"log"
	"os"
	"time"
)

type object = map[string]any

var (
	channel     = os.Getenv("PUSHSVC_CHANNEL")
	identityKey = os.Getenv("PUSHSVC_IDENTITY_KEY") // psi_…, of an HS256 key
)

// For the user who is signed in, and for nobody else. Valid for an hour.
func identityToken(userID string) string {
	claims := object{"sub": userID, "aud": channel, "exp": time.Now().Add(time.Hour).Unix()}
	signed := encoded(object{"alg": "HS256", "typ": "JWT"}) + "." + encoded(claims)
	mac := hmac.New(sha256.New, []byte(identityKey))
	mac.Write([]byte(signed))
	return signed + "." + base64.RawURLEncoding.EncodeToString(mac.Sum(nil))
}

func encoded(value object) string {
	text, err := json.Marshal(value)
	if err != nil {
		log.Fatal(err)
	}
	return base64.RawURLEncoding.EncodeToString(text)
}

func main() {
	fmt.Println(identityToken(os.Args[1]))
}
