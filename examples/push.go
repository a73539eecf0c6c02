// Subscribes a browser, sends to it, waits for the result, and shows how an error looks.
package main

import (
	"bytes"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"log"
	"net/http"
	"os"
	"time"
)

type object = map[string]any

var (
	service = os.Getenv("PUSHSVC_URL")
	channel = os.Getenv("PUSHSVC_CHANNEL")
	key     = os.Getenv("PUSHSVC_KEY")
	client  = http.Client{Timeout: 30 * time.Second}
)

// The status and the JSON of the answer, whatever the status is.
func call(method, path string, headers map[string]string, body any) (int, object) {
	var content bytes.Buffer
	if body != nil {
		must(json.NewEncoder(&content).Encode(body))
	}
	request, err := http.NewRequest(method, service+path, &content)
	must(err)
	request.Header.Set("Content-Type", "application/json")
	for name, value := range headers {
		request.Header.Set(name, value)
	}
	answer, err := client.Do(request)
	must(err)
	defer answer.Body.Close()
	var said object
	must(json.NewDecoder(answer.Body).Decode(&said))
	return answer.StatusCode, said
}

func must(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

func main() {
	var subscription object // a browser's PushSubscription
	must(json.Unmarshal([]byte(os.Getenv("PUSHSVC_SUBSCRIPTION")), &subscription))

	// Public: browsers and apps make this call.
	_, subscribed := call("POST", "/subscribe", map[string]string{"X-Channel-ID": channel}, subscription)
	fmt.Println("subscribed", subscribed["subscriptionId"])

	// A repeat with the same Idempotency-Key sends nothing a second time.
	owner := map[string]string{"Authorization": "Key " + key}
	id := make([]byte, 16)
	_, err := rand.Read(id)
	must(err)
	once := map[string]string{"Authorization": "Key " + key, "Idempotency-Key": hex.EncodeToString(id)}
	message := object{"title": "Hello", "body": "It works.", "url": "https://example.com/"}
	_, sent := call("POST", "/send-notification", once, message)
	fmt.Println("sent", sent["notification_id"])

	shown := object{}
	for shown["status"] != "sent" && shown["status"] != "failed" && shown["status"] != "cancelled" {
		time.Sleep(500 * time.Millisecond)
		_, shown = call("GET", fmt.Sprint("/notification/", sent["notification_id"]), owner, nil)
	}
	fmt.Printf("result %v: %v of %v\n", shown["status"], shown["delivered_count"], shown["recipient_count"])

	// Every error has a stable code (/docs/errors).
	status, problem := call("POST", "/send-notification", owner, object{"title": "No body"})
	first := problem["errors"].([]any)[0].(object)
	fmt.Println("refused", status, problem["code"], first["attr"])
}
