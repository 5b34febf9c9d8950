package peers

import "context"

// grpcGateway is grpc-gateway in front of a gRPC server: each subscriber has a
// stream of its own between the two, and each event is converted to JSON once
// for each.
func grpcGateway() Peer {
	return Peer{Name: "grpc-gateway", Start: func(ctx context.Context, o Options) (*Server, error) {
		return startFed(ctx, o, "internal/peers/grpcgatewayserver", Server{
			Request: get("/v1/watches/services/events"),
			Marker:  []byte("\n" + `{"result":{"upsert":`),
			Stamp:   []byte(`"revision":"`),
		})
	}}
}
