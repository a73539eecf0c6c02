// What the client imports that OpenAPI Generator makes for Go. Its tests run without a network.
module clients

go 1.23

require gopkg.in/validator.v2 v2.0.1
