// The Go libraries that do a part of what pushsvc does, for bench/: webpush-go, apns2 and
// firebase-admin-go. bench/peers/__init__.py says how such a program is called.
package main

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	firebase "firebase.google.com/go/v4"
	"firebase.google.com/go/v4/messaging"
	webpush "github.com/SherClockHolmes/webpush-go"
	"github.com/sideshow/apns2"
	"github.com/sideshow/apns2/token"
	"golang.org/x/net/http2"
	"golang.org/x/oauth2"
	"google.golang.org/api/option"
)

type work struct {
	CA      string `json:"ca"`
	Payload string `json:"payload"`
	Web     []struct {
		Endpoint string `json:"endpoint"`
		P256dh   string `json:"p256dh"`
		Auth     string `json:"auth"`
	} `json:"web"`
	Vapid struct {
		Public  string `json:"public"`
		Private string `json:"private"`
		Subject string `json:"subject"`
	} `json:"vapid"`
	Tokens []string `json:"tokens"`
	Apns   struct {
		Origin  string `json:"origin"`
		KeyFile string `json:"key_file"`
		KeyID   string `json:"key_id"`
		TeamID  string `json:"team_id"`
		Topic   string `json:"topic"`
	} `json:"apns"`
	Fcm struct {
		Origin  string `json:"origin"`
		Project string `json:"project"`
		Token   string `json:"token"`
	} `json:"fcm"`
}

// send sends message number i; the answer must be a success.
type send func(i int) error

func main() {
	library, path := os.Args[1], os.Args[2]
	count, inFlight := number(os.Args[3]), number(os.Args[4])
	var given work
	text, err := os.ReadFile(path)
	must(err)
	must(json.Unmarshal(text, &given))

	var one send
	switch library {
	case "webpush-go":
		one = web(given, inFlight)
	case "apns2":
		one = ios(given)
	case "firebase-admin-go":
		one = android(given, inFlight)
	default:
		panic("no such library: " + library)
	}

	orders := bufio.NewReader(os.Stdin)
	fmt.Println("ready")
	orders.ReadString('\n')
	fmt.Println("failed", all(one, count, inFlight))
	orders.ReadString('\n')
}

func all(one send, count, inFlight int) int64 {
	var next, failed atomic.Int64
	var running sync.WaitGroup
	for range inFlight {
		running.Go(func() {
			for i := next.Add(1) - 1; i < int64(count); i = next.Add(1) - 1 {
				if err := one(int(i)); err != nil {
					if failed.Add(1) == 1 {
						fmt.Fprintln(os.Stderr, err)
					}
				}
			}
		})
	}
	running.Wait()
	return failed.Load()
}

func web(given work, inFlight int) send {
	client := &http.Client{Transport: &http.Transport{
		TLSClientConfig: trusting(given.CA), MaxIdleConnsPerHost: inFlight,
	}}
	options := &webpush.Options{
		HTTPClient: client, Subscriber: given.Vapid.Subject, TTL: 3600,
		VAPIDPublicKey: given.Vapid.Public, VAPIDPrivateKey: given.Vapid.Private,
	}
	return func(i int) error {
		device := given.Web[i]
		subscription := &webpush.Subscription{
			Endpoint: device.Endpoint, Keys: webpush.Keys{P256dh: device.P256dh, Auth: device.Auth},
		}
		answer, err := webpush.SendNotification([]byte(given.Payload), subscription, options)
		if err != nil {
			return err
		}
		io.Copy(io.Discard, answer.Body)
		answer.Body.Close()
		if answer.StatusCode != http.StatusCreated {
			return fmt.Errorf("answered %d", answer.StatusCode)
		}
		return nil
	}
}

func ios(given work) send {
	key, err := token.AuthKeyFromFile(given.Apns.KeyFile)
	must(err)
	signer := &token.Token{AuthKey: key, KeyID: given.Apns.KeyID, TeamID: given.Apns.TeamID}
	client := apns2.NewTokenClient(signer)
	client.Host = given.Apns.Origin
	client.HTTPClient.Transport = &http2.Transport{TLSClientConfig: trusting(given.CA)}
	return func(i int) error {
		answer, err := client.Push(&apns2.Notification{
			DeviceToken: given.Tokens[i], Topic: given.Apns.Topic, Payload: []byte(given.Payload),
			Expiration: time.Now().Add(time.Hour), PushType: apns2.PushTypeAlert,
		})
		if err != nil {
			return err
		}
		if !answer.Sent() {
			return fmt.Errorf("answered %d", answer.StatusCode)
		}
		return nil
	}
}

func android(given work, inFlight int) send {
	transport := &http.Transport{
		TLSClientConfig: trusting(given.CA), MaxIdleConnsPerHost: inFlight, ForceAttemptHTTP2: true,
	}
	source := oauth2.StaticTokenSource(&oauth2.Token{AccessToken: given.Fcm.Token})
	client := &http.Client{Transport: &oauth2.Transport{Source: source, Base: transport}}
	app, err := firebase.NewApp(context.Background(), &firebase.Config{ProjectID: given.Fcm.Project},
		option.WithHTTPClient(client), option.WithEndpoint(given.Fcm.Origin+"/v1"))
	must(err)
	service, err := app.Messaging(context.Background())
	must(err)
	data := map[string]string{}
	must(json.Unmarshal([]byte(given.Payload), &data))
	return func(i int) error {
		_, err := service.Send(context.Background(), &messaging.Message{
			Token: given.Tokens[i], Data: data, Android: &messaging.AndroidConfig{Priority: "normal"},
		})
		return err
	}
}

func trusting(path string) *tls.Config {
	text, err := os.ReadFile(path)
	must(err)
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(text)
	return &tls.Config{RootCAs: pool}
}

func number(text string) int {
	value, err := strconv.Atoi(text)
	must(err)
	return value
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}
