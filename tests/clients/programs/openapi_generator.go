// With the module that OpenAPI Generator makes of docs/openapi.yaml, for Go.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"os"
	"slices"
	"time"

	"generated.example/pushsvc/client"
)

func must[T any](value T, err error) T {
	if err != nil {
		log.Fatal(err)
	}
	return value
}

func main() {
	configuration := openapi.NewConfiguration()
	configuration.Servers = openapi.ServerConfigurations{{URL: os.Getenv("PUSHSVC_URL")}}
	api := openapi.NewAPIClient(configuration)
	key := openapi.APIKey{Key: os.Getenv("PUSHSVC_KEY"), Prefix: "Key"}
	owner := context.WithValue(
		context.Background(), openapi.ContextAPIKeys, map[string]openapi.APIKey{"ApiKey": key},
	)

	var device openapi.SubscribeInput
	if err := json.Unmarshal([]byte(os.Getenv("PUSHSVC_SUBSCRIPTION")), &device); err != nil {
		log.Fatal(err)
	}
	subscribed, _, err := api.SubscriptionsAPI.Subscribe(context.Background()).
		XChannelID(os.Getenv("PUSHSVC_CHANNEL")).SubscribeInput(device).Execute()
	fmt.Println("subscribed", must(subscribed, err).SubscriptionId)

	message := openapi.NewSendInput()
	message.SetBody("It works.")
	message.SetTitle("Hello")
	message.SetUrl("https://example.com/")
	sent, _, err := api.NotificationsAPI.SendNotification(owner).
		SendInput(*message).IdempotencyKey("once-" + subscribed.SubscriptionId).Execute()
	fmt.Println("sent", must(sent, err).NotificationId)

	final := []openapi.NotificationStatus{
		openapi.NOTIFICATIONSTATUS_SENT,
		openapi.NOTIFICATIONSTATUS_FAILED,
		openapi.NOTIFICATIONSTATUS_CANCELLED,
	}
	read := api.NotificationsAPI.GetNotification(owner, sent.NotificationId)
	shown, _, err := read.Execute()
	for err == nil && !slices.Contains(final, shown.Status) {
		time.Sleep(200 * time.Millisecond)
		shown, _, err = read.Execute()
	}
	must(shown, err)
	fmt.Printf("result %s: %d of %d\n", shown.Status, shown.DeliveredCount, shown.RecipientCount)

	nowhere := openapi.NewSendInput()
	nowhere.SetBody("x")
	nowhere.SetSegmentId(subscribed.SubscriptionId)
	_, _, err = api.NotificationsAPI.SendNotification(owner).SendInput(*nowhere).Execute()
	var refused *openapi.GenericOpenAPIError
	if !errors.As(err, &refused) {
		log.Fatal(err)
	}
	problem := refused.Model().(openapi.Problem)
	fmt.Println("refused", problem.Status, problem.Code)
}
