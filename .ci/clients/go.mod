// What the client of OpenAPI Generator for Go and the receiver of docs/webhooks.md import. Tests run without a network.
module clients

go 1.23

require (
	github.com/standard-webhooks/standard-webhooks/libraries v0.0.1
	gopkg.in/validator.v2 v2.0.1
)
